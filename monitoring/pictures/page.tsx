// One dashboard on one page: `window.drawing` has the dashboard's file and what Prometheus answered.

import { DataFrame, dateTime, ThemeContext } from '@grafana/data';
import { ErrorBoundaryAlert, GlobalStyles, PanelChrome } from '@grafana/ui';
import { createRoot } from 'react-dom/client';

import { Answer } from './answers';
import { framesOf, Lines, Numbers, Panel, Rows, Span, theme } from './panels';

interface Drawing {
  dashboard: { title: string; panels: Panel[] };
  answers: Answer[][][];
  from: number;
  to: number;
  step: number;
  /** The page's width, a line of Grafana's grid, the space between two, and the title above them. [px] */
  grid: { width: number; height: number; gap: number; head: number };
}

const COLUMNS = 24;
const drawing = (window as unknown as { drawing: Drawing }).drawing;
const GRID = drawing.grid;

function spanOf({ from, to, step }: Drawing): Span {
  const ends = { from: dateTime(from * 1000), to: dateTime(to * 1000) };
  return { range: { ...ends, raw: ends }, step };
}

/** Return where a panel is on the page. [px] */
function placeOf({ gridPos: { x, y, w, h } }: Panel) {
  const column = (GRID.width - GRID.gap) / COLUMNS;
  return {
    left: GRID.gap + x * column,
    top: GRID.head + y * (GRID.height + GRID.gap),
    width: w * column - GRID.gap,
    height: h * (GRID.height + GRID.gap) - GRID.gap,
  };
}

function Body({ panel, frames, width, height }: { panel: Panel; frames: DataFrame[]; width: number; height: number }) {
  if (!frames.some((one) => one.length > 0)) {
    const words = panel.fieldConfig?.defaults.noValue ?? 'No data';
    return <div style={{ textAlign: 'center', paddingTop: height / 2 - 12 }}>{words}</div>;
  }
  if (panel.type === 'timeseries') {
    return <Lines frames={frames} width={width} height={height} span={spanOf(drawing)} />;
  }
  if (panel.type === 'stat') {
    return <Numbers frames={frames} width={width} height={height} mode={panel.options?.textMode} />;
  }
  return <Rows frames={frames} width={width} height={height} />;
}

function Place({ panel, frames }: { panel: Panel; frames: DataFrame[] }) {
  const { width, height, ...corner } = placeOf(panel);
  return (
    <div style={{ position: 'absolute', ...corner, width, height }}>
      {panel.type === 'row' ? (
        <h5 style={{ lineHeight: `${height}px` }}>{panel.title}</h5>
      ) : (
        <PanelChrome title={panel.title} width={width} height={height}>
          {(width, height) => (
            <ErrorBoundaryAlert>
              <Body panel={panel} frames={frames} width={width} height={height} />
            </ErrorBoundaryAlert>
          )}
        </PanelChrome>
      )}
    </div>
  );
}

async function draw() {
  const { dashboard, answers, step } = drawing;
  const frames = await Promise.all(dashboard.panels.map((panel, place) => framesOf(panel, answers[place], step)));
  createRoot(document.getElementById('dashboard')!).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <h3 style={{ padding: `${GRID.gap}px` }}>{dashboard.title}</h3>
      {dashboard.panels.map((panel, place) => (
        <Place key={place} panel={panel} frames={frames[place]} />
      ))}
    </ThemeContext.Provider>
  );
}

void draw();
