// The use of a pool by hour of the week, and what follows from it: buy, lend or leave.

export const BUSY = 0.85;
export const QUIET = 0.3;
export const MOST = 0.5;

// One heat map for each type and capacity type of a pool, in the reader's zone.
//
// @param points of `GET /pools/history`, with a step of an hour.
// @returns {{type, capacityType, cells, hours}[]} `cells[day][hour]`, Monday first: `{used, waiting, hours}` as shares
// of the capacity, or null where nothing is recorded; `hours`: how many points were read.
export function weekUse(points) {
  const found = new Map();
  for (const point of points ?? []) {
    const at = new Date(point.at);
    const day = (at.getDay() + 6) % 7;
    for (const capacityType of ["on-demand", "spot"]) {
      for (const [type, one] of Object.entries(point[capacityType] ?? {})) {
        if (!(one.capacity > 0)) continue;
        const key = JSON.stringify([type, capacityType]);
        if (!found.has(key)) found.set(key, { type, capacityType, sums: emptyWeek(), hours: 0 });
        add(found.get(key), day, at.getHours(), one);
      }
    }
  }
  return [...found.values()].map(({ type, capacityType, sums, hours }) => ({
    type,
    capacityType,
    hours,
    cells: sums.map((day) => day.map((cell) => (cell.hours ? meanOf(cell) : null))),
  }));
}

const emptyWeek = () => Array.from({ length: 7 }, () => Array.from({ length: 24 }, () => ({ used: 0, waiting: 0, capacity: 0, hours: 0 })));

function add(week, day, hour, one) {
  const cell = week.sums[day][hour];
  cell.used += one.used ?? 0;
  cell.waiting += one.waiting ?? 0;
  cell.capacity += one.capacity;
  cell.hours += 1;
  week.hours += 1;
}

const meanOf = ({ used, waiting, capacity, hours }) => ({ used: used / capacity, waiting: waiting / capacity, hours });

// `{advice: "buy" | "lend" | "leave" | null, busy, quiet}`: shares of the hours of a week; null: too little is recorded.
export function adviceOn({ cells, hours }) {
  const known = cells.flat().filter((one) => one !== null);
  if (hours < 48) return { advice: null, busy: 0, quiet: 0 };
  const share = (test) => known.filter(test).length / known.length;
  const busy = share((one) => one.used >= BUSY && one.waiting > 0);
  const quiet = share((one) => one.used < QUIET && !(one.waiting > 0));
  return { advice: busy >= MOST ? "buy" : quiet >= MOST ? "lend" : "leave", busy, quiet };
}

const percent = (share) => `${Math.round(share * 100)} %`;

export function adviceText({ advice, busy, quiet }) {
  switch (advice) {
    case "buy":
      return `Buy or reserve more: it is full, with jobs waiting, in ${percent(busy)} of the hours of a week.`;
    case "lend":
      return `Lend or shrink it: it is mostly free, with nothing waiting, in ${percent(quiet)} of the hours of a week.`;
    case "leave":
      return `Leave it as it is: full with jobs waiting in ${percent(busy)} of the hours of a week, mostly free in ${percent(quiet)}.`;
    default:
      return "Too little is recorded to say: two days are needed.";
  }
}

export const RULE =
  `The rule: buy where at least ${percent(MOST)} of the hours of a week are used to ${percent(BUSY)} or more while jobs ` +
  `wait; lend where at least ${percent(MOST)} are used below ${percent(QUIET)} and nothing waits; else leave.`;
