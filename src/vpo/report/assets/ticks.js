// The marks of axes.
function ticks(from, to, count) {
  const rough = (to - from) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((each) => each * power >= rough) * power;
  const values = [];
  const first = Math.ceil(from / step);
  // Counted from 0: above 2^53 adding 1 changes nothing. The step is never smaller than asked for.
  for (let at = 0; at <= count && (first + at) * step <= to + 1e-12; at++) values.push((first + at) * step);
  return values;
}
function logTicks(from, to) {
  let values = [];
  for (const steps of [[1, 3], [1, 2, 5], [1, 2, 3, 4, 5, 7], [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9]]) {
    values = [];
    for (let power = -3; power < 9; power++) values.push(...steps.map((each) => +(each * 10 ** power).toPrecision(6)));
    values = values.filter((each) => each >= from * 0.999 && each <= to * 1.001);
    if (values.length >= 3) break;
  }
  return values;
}
