// Labels at line ends that touch neither one another nor the frame, and as few marks as possible.

const DISTANCES = [9, 17, 28, 42, 58, 76, 96, 120, 150, 185];
const DIRECTIONS = [[1, 0], [0.8, -0.6], [0.8, 0.6], [0, -1], [0, 1], [-0.8, -0.6], [-0.8, 0.6], [-1, 0]];
const GAP = 2;

// ends: [{x, y, width, height}] in order of importance; obstacles: [{x, y}]; frame: {left, top, right, bottom};
// taken: boxes that no label may touch.
// Returns for each end its box {left, top, right, bottom}, or null where none is free.
export function placeLabels(ends, obstacles, frame, { taken: given = [], distances = DISTANCES } = {}) {
  const taken = [...given];
  return ends.map((end) => {
    const box = best(candidates(end, distances), taken, obstacles, frame);
    if (box) taken.push(box);
    return box;
  });
}

function* candidates({ x, y, width, height }, distances) {
  for (const distance of distances) {
    for (const [turn, [dx, dy]] of DIRECTIONS.entries()) {
      const anchorX = x + dx * distance;
      const anchorY = y + dy * distance;
      const left = dx > 0 ? anchorX : dx < 0 ? anchorX - width : anchorX - width / 2;
      const top = anchorY - height / 2 + (dx === 0 ? (dy * height) / 2 : 0);
      yield { left, top, right: left + width, bottom: top + height, cost: distance + turn };
    }
  }
}

function best(boxes, taken, obstacles, frame) {
  let found = null;
  for (const box of boxes) {
    if (found && box.cost >= found.cost) continue;
    if (box.left < frame.left || box.right > frame.right || box.top < frame.top || box.bottom > frame.bottom) continue;
    if (taken.some((other) => overlaps(box, other))) continue;
    const cost = box.cost + 8 * obstacles.filter((mark) => holds(box, mark)).length;
    if (!found || cost < found.cost) found = { ...box, cost };
  }
  return found;
}

const overlaps = (a, b) =>
  a.left < b.right + GAP && b.left < a.right + GAP && a.top < b.bottom + GAP && b.top < a.bottom + GAP;

const holds = (box, mark) =>
  mark.x > box.left - 3 && mark.x < box.right + 3 && mark.y > box.top - 3 && mark.y < box.bottom + 3;
