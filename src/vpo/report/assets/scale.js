// Numbers of plots: ranges, values between points, crossings, moving averages.
// The range of all numbers that are drawn of some lines, with a margin.
function rangeOf(lines) {
  let low = Infinity, high = -Infinity;
  for (const line of lines)
    for (const y of [...line.y, ...((bands && line.low) || []), ...((bands && line.high) || [])]) if (y !== null) [low, high] = [Math.min(low, y), Math.max(high, y)];
  if (low > high) return [0, 1];
  if (high - low < 1e-9) return [low - 0.05, high + 0.05];
  const margin = 0.05 * (high - low);
  return [low - margin, high + margin];
}
// Where a range of values may begin: at the least, or where a few far below would press all others together, above those.
function floorOf(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, most] = [sorted[Math.floor(sorted.length / 10)], sorted[sorted.length - 1]];
  const fence = most - 10 * (most - low);
  const least = sorted.find((each) => low === most || each >= fence);
  return least > sorted[0] && low < most ? least - 0.05 * (most - least) : sorted[0];
}
// A line without its unknown points.
function known(line) {
  const at = line.x.map((_, i) => i).filter((i) => line.x[i] !== null && line.y[i] !== null);
  const pick = (values) => values && at.map((i) => values[i]);
  return { ...line, x: pick(line.x), y: pick(line.y), low: pick(line.low), high: pick(line.high) };
}
// The values of a line at x: exact at its points, linear between them or those of the last one, null outside.
function valueAt(line, x, scale) {
  const after = line.x.findIndex((each) => each >= x);
  if (after < 0 || (after === 0 && line.x[0] !== x)) return null;
  if (line.x[after] === x) return { y: line.y[after], low: line.low?.[after] ?? null, high: line.high?.[after] ?? null };
  const share = (scale(x) - scale(line.x[after - 1])) / (scale(line.x[after]) - scale(line.x[after - 1]));
  const mix = (values) => (values && values[after] !== null ? values[after - 1] + (line.steps ? 0 : share) * (values[after] - values[after - 1]) : null);
  return { y: mix(line.y), low: mix(line.low), high: mix(line.high) };
}
// Where two lines cross, if on both sides they come apart by more than `least`.
function crossings(one, other, scale, least) {
  const xs = [...new Set([...one.x, ...other.x])].sort((a, b) => a - b);
  const points = xs.map((x) => [x, valueAt(one, x, scale), valueAt(other, x, scale)]).filter(([, a, b]) => a && b);
  const found = [];
  let side = 0, last = null; // the side that one is on, once it is clear, and the last point on that side
  for (const [x, a, b] of points) {
    const gap = a.y - b.y;
    if (last && gap * side > 0) last = [x, gap, a.y];
    if (Math.abs(gap) <= least || gap * side > 0) continue;
    if (side) {
      const share = last[1] / (last[1] - gap);
      found.push({ at: [last[0], x], share, y: last[2] + share * (a.y - last[2]) });
    }
    [side, last] = [Math.sign(gap), [x, gap, a.y]];
  }
  return found;
}
// The moving average of numbers; the window is cut off at the ends.
function smoothed(values, window) {
  const half = Math.floor(window / 2);
  return values.map((_, at) => {
    const some = values.slice(Math.max(0, at - half), at + half + 1);
    return some.reduce((sum, each) => sum + each, 0) / some.length;
  });
}
