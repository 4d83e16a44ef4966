// What Prometheus answered, as Grafana's frames.

import { DataFrame, FieldConfig, FieldType, Labels, renderLegendFormat, toDataFrame } from '@grafana/data';

/** A panel's query, as the dashboard's file has it, and what Prometheus answered. */
export interface Target {
  refId: string;
  expr: string;
  legendFormat?: string;
}

/** One series: `values` of a range, or `value` of an instant; [seconds, text]. */
export interface Answer {
  metric: Labels;
  values?: Array<[number, string]>;
  value?: [number, string];
}

/** Return a value, null where Prometheus has none, as of a rate over nothing. */
const numberOf = (text: string) => (text === 'NaN' ? null : Number(text));

/** Return one frame a series: times, and values under the legend that the dashboard gives them. */
export function series(target: Target, answers: Answer[], config: FieldConfig, step: number): DataFrame[] {
  return answers.map(({ metric, values = [] }) =>
    toDataFrame({
      refId: target.refId,
      fields: [
        { name: 'Time', type: FieldType.time, values: values.map(([at]) => at * 1000), config: { interval: step * 1000 } },
        {
          name: 'Value',
          type: FieldType.number,
          values: values.map(([, text]) => numberOf(text)),
          labels: metric,
          config: { ...config, displayNameFromDS: renderLegendFormat(target.legendFormat ?? '', metric) },
        },
      ],
    })
  );
}

/** Return the frame of a query in the format of a table: a row a series, a column a label. */
export function table(target: Target, answers: Answer[], config: FieldConfig): DataFrame {
  const labels = [...new Set(answers.flatMap(({ metric }) => Object.keys(metric)))].sort();
  return toDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: answers.map(({ value }) => value![0] * 1000) },
      ...labels.map((label) => ({
        name: label,
        type: FieldType.string,
        values: answers.map(({ metric }) => metric[label] ?? ''),
      })),
      {
        name: `Value #${target.refId}`,
        type: FieldType.number,
        values: answers.map(({ value }) => numberOf(value![1])),
        config,
      },
    ],
  });
}
