// The three kinds of panels that the dashboards have, drawn by Grafana's own components.

import {
  applyFieldOverrides,
  createTheme,
  DataFrame,
  DataTransformerConfig,
  FieldConfig,
  FieldDisplay,
  getFieldDisplayValues,
  standardTransformers,
  standardTransformersRegistry,
  TimeRange,
  transformDataFrame,
  VizOrientation,
} from '@grafana/data';
import {
  BigValue,
  BigValueColorMode,
  BigValueGraphMode,
  BigValueJustifyMode,
  BigValueTextMode,
  PanelContextProvider,
  Table,
  TimeSeries,
  VizRepeater,
} from '@grafana/ui';
import { LegendDisplayMode } from '@grafana/schema';
import { lastValueFrom } from 'rxjs';

import { Answer, series, table, Target } from './answers';

export const theme = createTheme({ colors: { mode: 'dark' } });
const ZONE = 'utc';
const plain = (text: string) => text;

standardTransformersRegistry.setInit(() =>
  [standardTransformers.mergeTransformer, standardTransformers.organizeFieldsTransformer].map((one) => ({
    id: one.id,
    name: one.name,
    transformation: one,
    editor: () => null,
    imageDark: '',
    imageLight: '',
  }))
);

/** A panel, as the dashboard's file has it. */
export interface Panel {
  type: 'row' | 'stat' | 'timeseries' | 'table';
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  fieldConfig?: { defaults: FieldConfig };
  targets?: Target[];
  transformations?: DataTransformerConfig[];
  options?: { textMode?: BigValueTextMode };
}

/** The span of time that is drawn, and how far apart its points are. [s] */
export interface Span {
  range: TimeRange;
  step: number;
}

/** Return the frames of a panel, as Grafana's own code makes them from the file's settings. */
export async function framesOf(panel: Panel, answers: Answer[][], step: number): Promise<DataFrame[]> {
  const config = configOf(panel);
  const frames = (panel.targets ?? []).flatMap((target, place) =>
    panel.type === 'table' ? [table(target, answers[place], config)] : series(target, answers[place], config, step)
  );
  const changed = await lastValueFrom(transformDataFrame(panel.transformations ?? [], frames));
  return applyFieldOverrides({
    data: changed,
    fieldConfig: { defaults: {}, overrides: [] },
    replaceVariables: plain,
    theme,
    timeZone: ZONE,
  });
}

/** Return a panel's settings; a threshold without a value is the lowest, and lines have colours of their own. */
function configOf(panel: Panel): FieldConfig {
  const given = panel.fieldConfig?.defaults ?? {};
  const steps = given.thresholds?.steps.map((one) => ({ ...one, value: one.value ?? -Infinity }));
  const mode = panel.type === 'timeseries' ? 'palette-classic' : 'thresholds';
  return { color: { mode }, ...given, thresholds: given.thresholds && { ...given.thresholds, steps: steps! } };
}

interface Drawn {
  frames: DataFrame[];
  width: number;
  height: number;
}

export function Lines({ frames, width, height, span }: Drawn & { span: Span }) {
  const legend = { displayMode: LegendDisplayMode.List, placement: 'bottom' as const, showLegend: true, calcs: [] };
  return (
    <PanelContextProvider value={{ eventsScope: 'global', eventBus: quiet, app: undefined as never }}>
      <TimeSeries
        frames={frames}
        structureRev={1}
        width={width}
        height={height}
        timeRange={span.range}
        timeZone={ZONE}
        legend={legend}
      />
    </PanelContextProvider>
  );
}

const quiet = {
  publish: () => undefined,
  getStream: () => ({ subscribe: () => ({ unsubscribe: () => undefined }), pipe: () => quiet.getStream() }),
  subscribe: () => ({ unsubscribe: () => undefined }),
  removeAllListeners: () => undefined,
  newScopedBus: () => quiet,
} as never as import('@grafana/data').EventBus & { getStream: () => never };

export function Numbers({ frames, width, height, mode = BigValueTextMode.Auto }: Drawn & { mode?: BigValueTextMode }) {
  const values = () =>
    getFieldDisplayValues({
      data: frames,
      reduceOptions: { calcs: ['lastNotNull'], values: false },
      fieldConfig: { defaults: {}, overrides: [] },
      replaceVariables: plain,
      theme,
      timeZone: ZONE,
      sparkline: true,
    });
  return (
    <VizRepeater<FieldDisplay>
      source={frames}
      getValues={values}
      renderCounter={0}
      width={width}
      height={height}
      itemSpacing={3}
      autoGrid
      orientation={VizOrientation.Auto}
      renderValue={({ value, width, height, count }) => (
        <BigValue
          value={value.display}
          sparkline={value.sparkline}
          count={count}
          colorMode={BigValueColorMode.Value}
          graphMode={BigValueGraphMode.Area}
          justifyMode={BigValueJustifyMode.Auto}
          textMode={mode}
          width={width}
          height={height}
          theme={theme}
        />
      )}
    />
  );
}

export function Rows({ frames, width, height }: Drawn) {
  return <Table data={frames[0]} width={width} height={height} />;
}
