// Checks certificates of cone programs in exact arithmetic (BigInt), in a browser or with Node.
//
//     node klopt_check.js FILE [FILE ..]        exit code 0: every certificate proves its claim
//     KloptCheck.check(text)                    in a page: returns a sentence, or throws
//
// The format and the rule are on one page, docs/certificate-format.md. It shares no code with klopt
// nor with klopt_check.py. Vectors are integers over one denominator; nothing is rounded, except
// outwards in the bounds of exp and log.
"use strict";

const KloptCheck = (() => {
  const FORMAT = "klopt certificate 1";
  const MAX_EXPONENT = 20000;
  const MAX_ELIMINATION = 100; // the order up to which a matrix needs no factor
  const MAX_ARGUMENT = 5000n; // of exp
  const MAX_POWER = 32n; // the sum of weights up to which powers themselves are compared
  const BITS = 256n;
  const ONE = 1n << BITS;

  class Rejected extends Error {}

  function need(condition, why) {
    if (!condition) throw new Rejected(why);
  }

  // Fractions: {n, d} with d > 0.

  const abs = (a) => (a < 0n ? -a : a);
  const max = (a, b) => (a > b ? a : b);

  function gcd(a, b) {
    while (b) [a, b] = [b, a % b];
    return abs(a);
  }

  const lcm = (a, b) => (a === b ? a : (a / gcd(a, b)) * b);

  function fraction(n, d = 1n) {
    const g = gcd(n, d) || 1n;
    return d < 0n ? { n: -n / g, d: -d / g } : { n: n / g, d: d / g };
  }

  const ZERO = fraction(0n);
  const plus = (a, b) => fraction(a.n * b.d + b.n * a.d, a.d * b.d);
  const minus = (a, b) => fraction(a.n * b.d - b.n * a.d, a.d * b.d);
  const times = (a, b) => fraction(a.n * b.n, a.d * b.d);
  const over = (a, b) => fraction(a.n * b.d, a.d * b.n);
  const compare = (a, b) => {
    const left = a.n * b.d - b.n * a.d;
    return left > 0n ? 1 : left < 0n ? -1 : 0;
  };
  const floor = (n, d) => {
    const q = n / d;
    return n % d !== 0n && n < 0n !== d < 0n ? q - 1n : q;
  };
  const bits = (a) => {
    const text = abs(a).toString(16);
    return a === 0n ? 0 : 4 * (text.length - 1) + 32 - Math.clz32(parseInt(text[0], 16));
  };

  const NUMBER = /^(-?)0x([0-9a-f]+)(?:\.([0-9a-f]+))?(?:p([+-]?[0-9]{1,5}))?(?:\/0x([0-9a-f]+))?$/;

  function number(text) {
    const found = typeof text === "string" ? NUMBER.exec(text) : null;
    need(found !== null, "something is no number");
    const [, sign, whole, part = "", power = "0", below] = found;
    let n = BigInt("0x" + whole + part);
    let d = 1n << BigInt(4 * part.length);
    const exponent = parseInt(power, 10);
    need(Math.abs(exponent) <= MAX_EXPONENT, "a number has an exponent out of range");
    if (exponent > 0) n <<= BigInt(exponent);
    else d <<= BigInt(-exponent);
    if (below !== undefined) {
      need(BigInt("0x" + below) > 0n, "a number has no denominator");
      d *= BigInt("0x" + below);
    }
    return fraction(sign ? -n : n, d);
  }

  // Vectors: {of: [BigInt], over: BigInt}

  function bytes(name, text) {
    need(typeof text === "string", `${name} is no text of base 64`);
    need(text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text), `${name} is no text of base 64`);
    const raw = atob(text);
    const data = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) data[i] = raw.charCodeAt(i);
    return new DataView(data.buffer);
  }

  function integers(name, text) {
    const view = bytes(name, text);
    need(view.byteLength % 4 === 0, `${name} is cut off`);
    return Array.from({ length: view.byteLength / 4 }, (_, i) => view.getInt32(4 * i, true));
  }

  // A double is mantissa * 2^exponent, with integers of 53 bits and -1074 <= exponent.
  function doubles(name, text) {
    const view = bytes(name, text);
    need(view.byteLength % 8 === 0, `${name} is cut off`);
    const size = view.byteLength / 8;
    const mantissas = new Array(size);
    const exponents = new Array(size);
    let least = 0;
    for (let i = 0; i < size; i++) {
      const low = view.getUint32(8 * i, true);
      const high = view.getUint32(8 * i + 4, true);
      const biased = (high >>> 20) & 0x7ff;
      need(biased !== 0x7ff, `${name} has an entry that is not finite`);
      let mantissa = (high & 0xfffff) * 4294967296 + low;
      if (biased) mantissa += 4503599627370496;
      let exponent = (biased || 1) - 1075;
      // Without trailing zeros the common denominator stays small.
      while (mantissa !== 0 && mantissa % 2 === 0) {
        mantissa /= 2;
        exponent += 1;
      }
      mantissas[i] = BigInt(high >>> 31 ? -mantissa : mantissa);
      exponents[i] = exponent;
      if (mantissa !== 0 && exponent < least) least = exponent;
    }
    return {
      of: mantissas.map((m, i) => (m === 0n ? 0n : m << BigInt(exponents[i] - least))),
      over: 1n << BigInt(-least),
    };
  }

  const isObject = (data) => typeof data === "object" && data !== null && !Array.isArray(data);

  function vector(name, data, size) {
    need(isObject(data), `${name} is missing`);
    let found;
    if ("float64" in data) found = doubles(name, data.float64);
    else {
      need(Array.isArray(data.of), `${name} has no entries`);
      const numbers = data.of.map(number);
      const common = number(data.over === undefined ? "0x1" : data.over);
      need(common.d === 1n && common.n > 0n, `${name} has no denominator`);
      need(numbers.every((value) => value.d === 1n), `${name} has fractions in it`);
      found = { of: numbers.map((value) => value.n), over: common.n };
    }
    need(found.of.length === size, `${name} has ${found.of.length} entries, not ${size}`);
    return found;
  }

  const entry = (v, i) => fraction(v.of[i], v.over);
  const part = (v, start, stop) => ({ of: v.of.slice(start, stop), over: v.over });
  const isZero = (v) => v.of.every((value) => value === 0n);

  function dot(a, b) {
    let total = 0n;
    for (let i = 0; i < a.of.length; i++) total += a.of[i] * b.of[i];
    return fraction(total, a.over * b.over);
  }

  // a + factor b
  function sum(a, b, factor = fraction(1n)) {
    const common = lcm(a.over, b.over * factor.d);
    const mine = common / a.over;
    const theirs = (common / (b.over * factor.d)) * factor.n;
    return { of: a.of.map((value, i) => mine * value + theirs * b.of[i]), over: common };
  }

  function whole(name, value, least = 0) {
    need(Number.isSafeInteger(value) && value >= least, `${name} is no whole number of at least ${least}`);
    return value;
  }

  // Matrices: {rows, columns, row: [], column: [], value: [BigInt], over}

  function matrix(name, data, rows, columns) {
    need(isObject(data), `${name} is missing`);
    if ("lower" in data) {
      const size = whole(name, data.lower);
      need(size === rows && size === columns, `${name} has another size`);
      const value = vector(name, data.value, (size * (size + 1)) / 2);
      const row = [];
      const column = [];
      for (let j = 0; j < size; j++) for (let i = j; i < size; i++) row.push(i), column.push(j);
      return { rows, columns, row, column, value: value.of, over: value.over };
    }
    const row = integers(name, data.row);
    const column = integers(name, data.column);
    need(row.length === column.length, `${name} has rows without columns`);
    const seen = new Set();
    for (let k = 0; k < row.length; k++) {
      need(row[k] >= 0 && row[k] < rows, `${name} has a row outside`);
      need(column[k] >= 0 && column[k] < columns, `${name} has a column outside`);
      seen.add(row[k] * columns + column[k]);
    }
    need(seen.size === row.length, `${name} has an entry twice`);
    const value = vector(name, data.value, row.length);
    return { rows, columns, row, column, value: value.of, over: value.over };
  }

  function symmetric(name, data, size) {
    const found = matrix(name, data, size, size);
    need(found.row.every((i, k) => i >= found.column[k]), `${name} has an entry above the diagonal`);
    return found;
  }

  const empty = (n) => ({ rows: n, columns: n, row: [], column: [], value: [], over: 1n });

  function product(A, x, mirrored = false, transposed = false) {
    const total = new Array(transposed ? A.columns : A.rows).fill(0n);
    const [to, from] = transposed ? [A.column, A.row] : [A.row, A.column];
    for (let k = 0; k < A.value.length; k++) {
      total[to[k]] += A.value[k] * x.of[from[k]];
      if (mirrored && A.row[k] !== A.column[k]) total[A.column[k]] += A.value[k] * x.of[A.row[k]];
    }
    return { of: total, over: A.over * x.over };
  }

  const curved = (H, x) => product(H, x, true);

  function matrixSum(A, B, factor) {
    const common = lcm(A.over, B.over * factor.d);
    const mine = common / A.over;
    const theirs = (common / (B.over * factor.d)) * factor.n;
    const total = new Map();
    A.value.forEach((value, k) => total.set(A.row[k] * A.rows + A.column[k], mine * value));
    B.value.forEach((value, k) => {
      const at = B.row[k] * A.rows + B.column[k];
      total.set(at, (total.get(at) || 0n) + theirs * value);
    });
    const keys = [...total.keys()];
    return {
      rows: A.rows,
      columns: A.rows,
      row: keys.map((key) => Math.floor(key / A.rows)),
      column: keys.map((key) => key % A.rows),
      value: [...total.values()],
      over: common,
    };
  }

  // Positive semidefinite matrices

  function needSemidefinite(name, S, given) {
    if (given === undefined) {
      const isDiagonal = S.row.every((i, k) => i === S.column[k]);
      need(S.rows <= MAX_ELIMINATION || isDiagonal, `${name} needs a factor`);
      need(eliminates(S), `${name} is not positive semidefinite`);
      return;
    }
    const L = matrix(`the factor of ${name}`, given, S.rows, S.rows);
    const n = S.rows;
    // (S - LL') times both denominators, row by row of the lower triangle.
    const bySize = Array.from({ length: n }, () => new Map());
    S.value.forEach((value, k) => bySize[S.row[k]].set(S.column[k], value));
    const square = L.over * L.over;
    const room = new Array(n).fill(0n);
    for (const [i, row] of rowsOfProduct(L)) {
      const own = bySize[i];
      for (const [j, value] of row) {
        const rest = (own.get(j) || 0n) * square - value * S.over;
        own.delete(j);
        spend(room, i, j, rest);
      }
    }
    bySize.forEach((row, i) => row.forEach((value, j) => spend(room, i, j, value * square)));
    need(room.every((value) => value >= 0n), `${name} is not shown to be positive semidefinite`);
  }

  function spend(room, i, j, value) {
    if (i === j) room[i] += value;
    else {
      room[i] -= abs(value);
      room[j] -= abs(value);
    }
  }

  // The rows of the lower triangle of LL', as [i, [[j, value], ..]]. The column k of L is one long
  // integer, whose digits in a large base are its entries; a row of LL' is a sum of few products.
  function* rowsOfProduct(L) {
    const n = L.rows;
    const rows = Array.from({ length: n }, () => []);
    const columns = Array.from({ length: n }, () => []);
    let largest = 0n;
    L.value.forEach((value, k) => {
      if (value === 0n) return;
      rows[L.row[k]].push([L.column[k], value]);
      columns[L.column[k]].push([L.row[k], value]);
      largest = max(largest, abs(value));
    });
    const digits = Math.floor((2 * bits(largest) + bits(BigInt(n)) + 2) / 4) + 1; // of 4 bits each
    const width = BigInt(4 * digits);
    const half = 1n << (width - 1n);
    // Hexadecimal texts are joined faster than integers are shifted and added; all digits are made
    // positive by half a base, which is taken off again.
    const pattern = half.toString(16).padStart(digits, "0");
    const shift = BigInt("0x" + pattern.repeat(n));
    const packed = columns.map((column) => {
      const texts = new Array(n).fill(pattern);
      for (const [i, value] of column) texts[n - 1 - i] = (half + value).toString(16).padStart(digits, "0");
      return BigInt("0x" + texts.join("")) - shift;
    });
    for (let i = 0; i < n; i++) {
      let total = shift;
      for (const [k, value] of rows[i]) total += value * packed[k];
      const text = total.toString(16).padStart(digits * n, "0");
      const found = [];
      for (let j = 0; j <= i; j++) {
        const end = text.length - digits * j;
        const value = BigInt("0x" + text.slice(end - digits, end)) - half;
        if (value !== 0n) found.push([j, value]);
      }
      yield [i, found];
    }
  }

  function eliminates(S) {
    const rows = Array.from({ length: S.rows }, () => new Map());
    S.value.forEach((value, k) => {
      if (value === 0n) return;
      rows[S.row[k]].set(S.column[k], fraction(value));
      rows[S.column[k]].set(S.row[k], fraction(value));
    });
    for (let k = 0; k < S.rows; k++) {
      const others = rows[k];
      const pivot = others.get(k) || ZERO;
      others.delete(k);
      if (pivot.n < 0n || (pivot.n === 0n && others.size)) return false;
      for (const [i, left] of others) {
        const row = rows[i];
        row.delete(k);
        const share = over(left, pivot);
        for (const [j, value] of others) {
          const next = minus(row.get(j) || ZERO, times(share, value));
          if (next.n === 0n) row.delete(j);
          else row.set(j, next);
        }
      }
    }
    return true;
  }

  // exp and log, each step rounded up (up = 1n) or down (up = 0n)

  function expAbove(t) {
    need(t.n <= MAX_ARGUMENT * t.d, "an exponential is out of range");
    if (t.n >= 0n) return expOf(t, 1n);
    const size = -t.n > MAX_ARGUMENT * t.d ? fraction(MAX_ARGUMENT) : fraction(-t.n, t.d);
    return over(fraction(1n), expOf(size, 0n));
  }

  function expOf(t, up) {
    const halvings = BigInt(bits(t.n / t.d) + 1);
    const x = (t.n * ONE) / (t.d << halvings) + up;
    let total = ONE;
    let term = ONE;
    for (let k = 1n; term > up; k++) {
      term = (term * x) / (ONE * k) + up;
      total += term;
    }
    total += 2n * up;
    for (let i = 0n; i < halvings; i++) total = ((total * total) >> BITS) + up;
    return fraction(total, ONE);
  }

  function logOf(q, up) {
    let exponent = BigInt(bits(q.n) - bits(q.d));
    let m = exponent >= 0n ? fraction(q.n, q.d << exponent) : fraction(q.n << -exponent, q.d);
    if (m.n < m.d) {
      m = fraction(2n * m.n, m.d);
      exponent -= 1n;
    }
    const two = artanh(fraction(1n, 3n), exponent > 0n ? up : 1n - up);
    const rest = artanh(fraction(m.n - m.d, m.n + m.d), up);
    return fraction(2n * (exponent * two + rest), ONE);
  }

  // In units of 1 / ONE.
  function artanh(u, up) {
    const x = (u.n * ONE) / u.d + up;
    const square = ((x * x) >> BITS) + up;
    let total = 0n;
    for (let power = x, k = 1n; power > up; k += 2n) {
      total += power / k + up;
      power = ((power * square) >> BITS) + up;
    }
    return total + 2n * up;
  }

  // Cones

  function integerRoot(value) {
    let x = 1n << BigInt(Math.ceil(bits(value) / 2));
    for (;;) {
      const next = (x + value / x) >> 1n;
      if (next >= x) return x;
      x = next;
    }
  }

  const ROOT_OF_TWO = integerRoot(2n << (2n * BITS)); // below, in units of 1 / ONE

  function needInCone(name, kind, size, s, dual, factor) {
    if (kind === "zero") need(dual || isZero(s), `${name}: an equation does not hold`);
    else if (kind === "nonnegative") need(s.of.every((value) => value >= 0n), `${name}: an entry is negative`);
    else if (kind === "second order") {
      const squares = s.of.slice(1).reduce((total, value) => total + value * value, 0n);
      need(s.of[0] >= 0n && s.of[0] * s.of[0] >= squares, `${name} is not in the second-order cone`);
    } else if (kind === "semidefinite" || kind === "svec") {
      needSemidefinite(name, triangle(kind, size, s, dual), factor);
    } else if (kind === "power") needInPower(name, size, s, dual);
    else needInExponential(name, s, dual);
  }

  function triangle(kind, order, s, dual) {
    let [diagonal, other, common] = [1n, 1n, s.over];
    if (kind === "semidefinite" && dual) [diagonal, common] = [2n, 2n * common];
    if (kind === "svec") [diagonal, other, common] = [ROOT_OF_TWO, ONE, common << BITS];
    const found = { rows: order, columns: order, row: [], column: [], value: [], over: common };
    let at = 0;
    for (let j = 0; j < order; j++) {
      for (let i = j; i < order; i++) {
        const value = s.of[at++];
        need(i !== j || value >= 0n, "a diagonal entry is negative");
        found.row.push(i);
        found.column.push(j);
        found.value.push(value * (i === j ? diagonal : other));
      }
    }
    return found;
  }

  function needInExponential(name, s, dual) {
    const [a, b, c] = [entry(s, 0), entry(s, 1), entry(s, 2)];
    const no = `${name} is not in the exponential cone`;
    const [scale, argument] = dual ? [a, b] : [b, a];
    if (scale.n === 0n) {
      need(c.n >= 0n && (dual ? b.n >= 0n : a.n <= 0n), no);
      return;
    }
    need((dual ? scale.n < 0n : scale.n > 0n) && c.n > 0n, no);
    const t = over(argument, scale);
    const bound = times(fraction(abs(scale.n), scale.d), expAbove(dual ? minus(t, fraction(1n)) : t));
    need(compare(bound, c) <= 0, no);
  }

  function needInPower(name, weights, s, dual) {
    const no = `${name} is not in the power cone`;
    const total = weights.reduce((a, b) => a + b, 0n);
    let x = weights.map((_, i) => entry(s, i));
    const last = entry(s, weights.length);
    const z = fraction(abs(last.n), last.d);
    need(x.every((value) => value.n >= 0n), no);
    if (dual) x = x.map((value, i) => fraction(value.n * total, value.d * weights[i]));
    if (z.n === 0n || x.every((value) => compare(z, value) <= 0)) return;
    need(x.every((value) => value.n > 0n), no);
    if (total <= MAX_POWER) {
      const power = x.reduce((p, value, i) => times(p, fraction(value.n ** weights[i], value.d ** weights[i])), fraction(1n));
      need(compare(power, fraction(z.n ** total, z.d ** total)) >= 0, no);
      return;
    }
    const below = x.reduce((p, value, i) => plus(p, times(fraction(weights[i]), logOf(value, 0n))), ZERO);
    need(compare(below, times(fraction(total), logOf(z, 1n))) >= 0, no);
  }

  // The rule of cone programs

  const triangular = (k) => (k * (k + 1)) / 2;
  const SIZES = {
    zero: (k) => k,
    nonnegative: (k) => k,
    "second order": (k) => k,
    semidefinite: triangular,
    svec: triangular,
    exponential: (k) => k,
  };

  function list(name, data) {
    need(Array.isArray(data), `${name} is no list`);
    return data;
  }

  function readProgram(data) {
    const n = whole("variables", data.variables);
    const program = {
      n,
      scale: number(data.scale === undefined ? "0x1" : data.scale),
      shift: number(data.shift === undefined ? "0x0" : data.shift),
      c: vector("c", data.c, n),
      P: "P" in data ? symmetric("P", data.P, n) : empty(n),
      blocks: [],
    };
    need(program.scale.n !== 0n, "the objective is multiplied by 0");
    let rows = 0;
    for (const cone of list("cones", data.cones === undefined ? [] : data.cones)) {
      need(Array.isArray(cone) && cone.length === 2, "a cone is a kind and a size");
      let [kind, size] = cone;
      let length;
      if (kind === "power") {
        const weights = list("the weights of a power cone", size).map(number);
        need(weights.length > 0 && weights.every((w) => w.d === 1n && w.n > 0n), "the weights of a power cone are positive integers");
        size = weights.map((w) => w.n);
        length = size.length + 1;
      } else {
        need(typeof kind === "string" && Object.hasOwn(SIZES, kind), "there is no such cone");
        length = SIZES[kind](whole("the size of a cone", size, 1));
        need(kind !== "exponential" || size === 3, "an exponential cone has three rows");
      }
      program.blocks.push([kind, size, rows, rows + length]);
      rows += length;
      need(Number.isSafeInteger(rows), "there are too many rows");
    }
    program.A = matrix("A", data.A, rows, n);
    program.b = vector("b", data.b, rows);
    program.quadratics = list("quadratics", data.quadratics === undefined ? [] : data.quadratics).map((row) => {
      need(isObject(row), "a quadratic constraint has P, q and r");
      return { P: symmetric("P", row.P, n), q: vector("q", row.q, n), r: number(row.r) };
    });
    return program;
  }

  function needInCones(program, name, s, dual, factors) {
    program.blocks.forEach(([kind, size, start, stop], index) => {
      const where = `${name} ${index}`;
      const factor = Object.hasOwn(factors, where) ? factors[where] : undefined;
      needInCone(where, kind, size, part(s, start, stop), dual, factor);
    });
  }

  function factorsOf(witness) {
    const found = witness.factors === undefined ? {} : witness.factors;
    need(isObject(found), "factors are given by name");
    return found;
  }

  const halfOf = (a) => fraction(a.n, 2n * a.d);

  function valueAt(program, witness) {
    const x = vector("x", witness.x, program.n);
    const slack = sum(program.b, product(program.A, x), fraction(-1n));
    needInCones(program, "slack", slack, false, factorsOf(witness));
    program.quadratics.forEach(({ P, q, r }, index) => {
      const value = plus(halfOf(dot(curved(P, x), x)), dot(q, x));
      need(compare(value, r) <= 0, `quadratic constraint ${index} is violated`);
    });
    return plus(halfOf(dot(curved(program.P, x), x)), dot(program.c, x));
  }

  function boundBy(program, witness, withObjective) {
    const { n, quadratics } = program;
    const y = vector("y", witness.y, program.A.rows);
    const factors = factorsOf(witness);
    needInCones(program, "multipliers", y, true, factors);
    let H = withObjective ? program.P : empty(n);
    let gradient = product(program.A, y, false, true);
    if (withObjective) gradient = sum(gradient, program.c);
    let value = minus(ZERO, dot(program.b, y));
    const lam = quadratics.length ? vector("lam", witness.lam, quadratics.length) : { of: [], over: 1n };
    need(lam.of.every((each) => each >= 0n), "a multiplier of a quadratic constraint is negative");
    quadratics.forEach(({ P, q, r }, index) => {
      if (lam.of[index] === 0n) return;
      const factor = entry(lam, index);
      H = matrixSum(H, P, factor);
      gradient = sum(gradient, q, factor);
      value = minus(value, times(factor, r));
    });
    if (H.value.length === 0) {
      need(isZero(gradient), "the multipliers do not cancel the gradient");
      return value;
    }
    const w = vector("w", witness.w, n);
    const Hw = curved(H, w);
    need(isZero(sum(gradient, Hw)), "the multipliers do not cancel the gradient");
    value = minus(value, halfOf(dot(Hw, w)));
    const phi = number(witness.phi === undefined ? "0x0" : witness.phi);
    need(phi.n >= 0n, "phi is negative");
    if (phi.n > 0n) {
      const variables = new Set();
      H.value.forEach((each, k) => {
        if (each !== 0n) variables.add(H.row[k]).add(H.column[k]);
      });
      const places = [...variables].sort((a, b) => a - b);
      const diagonal = { rows: n, columns: n, row: places, column: places, value: places.map(() => phi.n), over: phi.d };
      H = matrixSum(H, diagonal, fraction(1n));
      value = minus(value, times(halfOf(phi), largestSquare(program, w, places)));
    }
    needSemidefinite("the curvature", H, Object.hasOwn(factors, "curvature") ? factors.curvature : undefined);
    return value;
  }

  function largestSquare(program, w, places) {
    const { A, b } = program;
    const count = new Array(A.rows).fill(0);
    const only = new Array(A.rows).fill(-1);
    A.value.forEach((value, k) => {
      if (value === 0n) return;
      count[A.row[k]] += 1;
      only[A.row[k]] = k;
    });
    const below = new Map();
    const above = new Map();
    for (const [kind, , start, stop] of program.blocks) {
      if (kind !== "nonnegative") continue;
      for (let i = start; i < stop; i++) {
        if (count[i] !== 1) continue;
        const value = A.value[only[i]];
        const j = A.column[only[i]];
        const bound = fraction(b.of[i] * A.over, b.over * value);
        const known = value > 0n ? above : below;
        const best = known.get(j);
        const isBetter = best === undefined || (value > 0n ? compare(bound, best) < 0 : compare(bound, best) > 0);
        if (isBetter) known.set(j, bound);
      }
    }
    return places.reduce((total, j) => {
      need(below.has(j) && above.has(j), "phi needs bounds of the variables");
      const squares = [below.get(j), above.get(j)].map((bound) => {
        const distance = minus(bound, entry(w, j));
        return times(distance, distance);
      });
      return plus(total, compare(squares[0], squares[1]) > 0 ? squares[0] : squares[1]);
    }, ZERO);
  }

  function needRay(program, witness) {
    const d = vector("ray", witness.ray, program.n);
    need(isZero(curved(program.P, d)), "the objective is curved along the ray");
    for (const { P, q } of program.quadratics) {
      need(isZero(curved(P, d)) && dot(q, d).n <= 0n, "the ray leaves a quadratic constraint");
    }
    const up = product(program.A, d);
    needInCones(program, "ray", { of: up.of.map((value) => -value), over: up.over }, false, factorsOf(witness));
    need(dot(program.c, d).n < 0n, "the objective does not improve along the ray");
  }

  // Certificates: JSON whose numbers are whole and whose keys stand once in an object. JSON.parse
  // keeps the last of equal keys and rounds numbers, so that the text is looked at first.

  function needPlainJson(text) {
    const token = /\s+|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|[{}[\],:]|true|false|null/y;
    const stack = [];
    let key = null;
    for (let at = 0; at < text.length; ) {
      const start = at;
      if (text[at] === '"') {
        // Texts may be long: no regular expression goes through them.
        do at = text.indexOf('"', at + 1);
        while (at > 0 && isEscaped(text, at));
        need(at > 0, "this is no JSON");
        at += 1;
        // Only short texts are keys.
        key = at - start < 1000 ? text.slice(start, at) : null;
        continue;
      }
      token.lastIndex = at;
      const found = token.exec(text);
      need(found !== null, "this is no JSON");
      at = token.lastIndex;
      const word = found[0];
      if (/^\s/.test(word)) continue;
      if (word === "{") stack.push(new Set());
      else if (word === "[") stack.push(null);
      else if (word === "}" || word === "]") stack.pop();
      else if (word === ":") {
        const keys = stack[stack.length - 1];
        need(keys instanceof Set && key !== null, "this is no JSON");
        // The same key may be written with escapes.
        const name = parsed(key);
        need(!keys.has(name), "a key stands there twice");
        keys.add(name);
      } else if (/^-?[0-9]/.test(word)) {
        need(/^-?[0-9]{1,16}$/.test(word), "a number is not whole; numbers are written in hexadecimal digits");
      }
      key = null;
    }
  }

  // Whether a character stands after an odd number of backslashes.
  function isEscaped(text, at) {
    let start = at;
    while (text[start - 1] === "\\") start -= 1;
    return (at - start) % 2 === 1;
  }

  function parsed(text) {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new Rejected("this is no JSON");
    }
  }

  // Keys sorted, no spaces, other characters than ASCII escaped: what the digest is taken of.
  function canonical(data) {
    if (Array.isArray(data)) return `[${data.map(canonical).join(",")}]`;
    if (!isObject(data)) return ascii(JSON.stringify(data));
    // By code points, as Python sorts; keys beyond ASCII are escaped one unit at a time.
    const keys = Object.keys(data).sort((a, b) => {
      const [left, right] = [[...a], [...b]];
      for (let i = 0; i < Math.min(left.length, right.length); i++) {
        const gap = left[i].codePointAt(0) - right[i].codePointAt(0);
        if (gap) return gap;
      }
      return left.length - right.length;
    });
    return `{${keys.map((key) => `${ascii(JSON.stringify(key))}:${canonical(data[key])}`).join(",")}}`;
  }

  const ascii = (text) =>
    text.replace(/[\u007f-\uffff]/g, (letter) =>
      letter === "\u007f" ? letter : "\\u" + letter.charCodeAt(0).toString(16).padStart(4, "0"),
    );

  // SHA-256 (FIPS 180-4) of a text of ASCII characters: pages opened from a file have no crypto.subtle.
  function sha256(text) {
    const [roots, powers] = [[], []];
    for (let p = 2; roots.length < 64; p++) {
      let prime = true;
      for (let d = 2; d * d <= p; d++) if (p % d === 0) prime = false;
      if (!prime) continue;
      if (powers.length < 8) powers.push((Math.sqrt(p) * 4294967296) | 0);
      roots.push((Math.cbrt(p) * 4294967296) | 0);
    }
    const size = text.length;
    const data = new Uint8Array((((size + 8) >> 6) + 1) << 6);
    for (let i = 0; i < size; i++) data[i] = text.charCodeAt(i);
    data[size] = 0x80;
    const view = new DataView(data.buffer);
    view.setUint32(data.length - 8, Math.floor(size / 536870912));
    view.setUint32(data.length - 4, (size << 3) >>> 0);
    const rotate = (x, k) => (x >>> k) | (x << (32 - k));
    const h = powers;
    const w = new Int32Array(64);
    for (let start = 0; start < data.length; start += 64) {
      for (let i = 0; i < 16; i++) w[i] = view.getInt32(start + 4 * i);
      for (let i = 16; i < 64; i++) {
        const s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >>> 3);
        const s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >>> 10);
        w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
      }
      let [a, b, c, d, e, f, g, last] = h;
      for (let i = 0; i < 64; i++) {
        const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        const t1 = (last + s1 + ((e & f) ^ (~e & g)) + roots[i] + w[i]) | 0;
        const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
        [last, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
      }
      [a, b, c, d, e, f, g, last].forEach((value, i) => (h[i] = (h[i] + value) | 0));
    }
    return h.map((value) => (value >>> 0).toString(16).padStart(8, "0")).join("");
  }

  function check(text) {
    needPlainJson(text);
    const data = parsed(text);
    need(isObject(data) && data.format === FORMAT, `this is no ${FORMAT}`);
    for (const name of ["problem", "claim", "witness"]) need(isObject(data[name]), `${name} is missing`);
    const { problem, claim, witness } = data;
    need(problem.rule === "cone program", "there is no such rule");
    need(data.digest === sha256(canonical(problem)), "the digest is that of another problem");
    const program = readProgram(problem);
    if (claim.verdict === "INFEASIBLE") {
      need(boundBy(program, witness, false).n > 0n, "the multipliers prove no contradiction");
      return "INFEASIBLE: no point satisfies the constraints";
    }
    if (claim.verdict === "UNBOUNDED") {
      valueAt(program, witness);
      needRay(program, witness);
      return "UNBOUNDED: from a feasible point the objective improves without end";
    }
    need(claim.verdict === "OPTIMAL" || claim.verdict === "FEASIBLE", "there is no such verdict");
    need("x" in witness, "no point is given");
    const user = (value) => plus(times(program.scale, value), program.shift);
    const low = "y" in witness ? user(boundBy(program, witness, true)) : null;
    const high = user(valueAt(program, witness));
    const [lower, upper] = program.scale.n > 0n ? [low, high] : [high, low];
    const said = { lower: null, upper: null };
    for (const [name, end, sign] of [["lower", lower, 1], ["upper", upper, -1]]) {
      if (claim[name] === undefined || claim[name] === null) continue;
      said[name] = number(claim[name]);
      need(end !== null, `nothing proves the ${name} end`);
      need(sign * compare(end, said[name]) >= 0, `the ${name} end that is claimed is not what is proven`);
    }
    need(said.lower !== null || said.upper !== null, "nothing is claimed");
    if (claim.verdict === "OPTIMAL") {
      need(said.lower !== null && said.upper !== null, "an end is missing");
      const tol = number(claim.tol);
      const size = fraction(abs(said.upper.n) + said.upper.d, said.upper.d);
      need(compare(minus(said.upper, said.lower), times(tol, size)) <= 0, "the interval is wider than the tolerance says");
    }
    const left = said.lower === null ? "" : `${shown(said.lower)} <= `;
    const right = said.upper === null ? "" : ` <= ${shown(said.upper)}`;
    return `${claim.verdict}: ${left}optimum${right}`;
  }

  // About the value, for reading.
  function shown(value) {
    const shift = BigInt(Math.max(0, bits(value.d) - bits(value.n) + 64));
    const scaled = Number(floor(value.n << shift, value.d));
    return Number((scaled * 2 ** -Number(shift)).toPrecision(12)).toString();
  }

  return { check, Rejected };
})();

if (typeof module !== "undefined") {
  module.exports = KloptCheck;
  if (require.main === module) {
    const fs = require("node:fs");
    let worst = 0;
    for (const path of process.argv.slice(2)) {
      try {
        console.log(`${path}: proven: ${KloptCheck.check(fs.readFileSync(path, "utf8"))}`);
      } catch (error) {
        const isRejected = error instanceof KloptCheck.Rejected;
        console.log(`${path}: ${isRejected ? "REJECTED" : "cannot be checked"}: ${error.message}`);
        worst = Math.max(worst, isRejected ? 1 : 2);
      }
    }
    process.exit(worst);
  }
}
