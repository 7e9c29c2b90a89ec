// Checks certificates of optima in exact arithmetic (BigInt), in a browser or with Node.
//
//     node klopt_check.js FILE [FILE ..]        exit code 0: every certificate proves its claim
//     KloptCheck.check(text)                    in a page: returns a sentence, or throws
//
// The format and its rules are on one page, docs/certificate-format.md. It shares no code with klopt
// nor with klopt_check.py. Vectors are integers over one denominator; nothing is rounded, except
// outwards in the bounds of exp, log and roots.
"use strict";

const KloptCheck = (() => {
  const FORMAT = "klopt certificate 1";
  const MAX_EXPONENT = 20000;
  const MAX_ELIMINATION = 100; // the order up to which a matrix needs no factor
  const MAX_ARGUMENT = 5000n; // of exp
  const MAX_POWER = 32n; // an exponent; the sum of weights up to which powers themselves are compared
  const MAX_TERMS = 200000; // of a product of polynomials, before like ones are added
  const MAX_DEGREE = 64; // of a monomial
  const MAX_DEPTH = 50; // of an expression
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
    need(dominates(S, L, 1n), `${name} is not shown to be positive semidefinite`);
  }

  // Whether S - LL', or LL' - S for sign = -1n, has diagonal entries that outweigh their rows.
  function dominates(S, L, sign) {
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
        spend(room, i, j, i === j ? sign * rest : rest);
      }
    }
    bySize.forEach((row, i) => row.forEach((value, j) => spend(room, i, j, (i === j ? sign : 1n) * value * square)));
    return room.every((value) => value >= 0n);
  }

  // log det of a positive definite matrix, or more (up = 1n), or less.
  function logDet(name, S, given, up) {
    if (given === undefined) {
      need(S.rows <= MAX_ELIMINATION, `${name} needs a factor`);
      return logOf(determinant(name, S), up);
    }
    const L = matrix(`the factor of ${name}`, given, S.rows, S.rows);
    need(dominates(S, L, up ? -1n : 1n), `${name} is not shown to be on this side of its factor`);
    let pivots = 1n;
    let count = 0;
    L.value.forEach((value, k) => {
      need(value === 0n || L.row[k] >= L.column[k], `the factor of ${name} is not triangular`);
      if (L.row[k] !== L.column[k]) return;
      need(value > 0n, `the factor of ${name} has a diagonal entry that is not positive`);
      pivots *= value;
      count += 1;
    });
    need(count === S.rows, `the factor of ${name} lacks a diagonal entry`);
    return times(fraction(2n), logOf(fraction(pivots, L.over ** BigInt(S.rows)), up));
  }

  // By elimination in integers, where every division is exact (Bareiss); all leading minors are positive.
  function determinant(name, S) {
    const n = S.rows;
    const rows = Array.from({ length: n }, () => new Array(n).fill(0n));
    S.value.forEach((value, k) => (rows[S.row[k]][S.column[k]] = rows[S.column[k]][S.row[k]] = value));
    let last = 1n;
    for (let k = 0; k < n; k++) {
      const pivot = rows[k][k];
      need(pivot > 0n, `${name} is not positive definite`);
      for (let i = k + 1; i < n; i++) {
        for (let j = k + 1; j <= i; j++) {
          rows[i][j] = (rows[i][j] * pivot - rows[i][k] * rows[j][k]) / last;
        }
      }
      last = pivot;
    }
    return fraction(last, S.over ** BigInt(n));
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
    if (value === 0n) return 0n;
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

  // The problem's value is scale times that of the form, plus shift.
  function units(data) {
    const scale = number(data.scale === undefined ? "0x1" : data.scale);
    need(scale.n !== 0n, "the objective is multiplied by 0");
    return { scale, shift: number(data.shift === undefined ? "0x0" : data.shift) };
  }

  function readProgram(data) {
    const n = whole("variables", data.variables);
    const program = {
      n,
      ...units(data),
      c: vector("c", data.c, n),
      P: "P" in data ? symmetric("P", data.P, n) : empty(n),
      blocks: [],
      logDets: [],
      constants: [],
    };
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
    for (const term of list("log det", data["log det"] === undefined ? [] : data["log det"])) readLogDet(program, term);
    return program;
  }

  function readLogDet(program, term) {
    need(isObject(term), "a log det has a cone or a matrix, and a weight");
    const weight = number(term.weight);
    if ("cone" in term) {
      const index = whole("the cone of a log det", term.cone);
      need(index < program.blocks.length && program.blocks[index][0] === "semidefinite", "a log det is of a semidefinite cone");
      need(program.logDets.every((other) => other.index !== index), "a cone has two log dets");
      need(weight.n > 0n, "the weight of a log det is not positive");
      program.logDets.push({ index, weight });
      return;
    }
    const order = whole("the order of a log det", term.order, 1);
    need(order <= MAX_ELIMINATION, "a constant log det is of too high an order");
    program.constants.push({ matrix: symmetric("a log det", term.matrix, order), weight });
  }

  const named = (factors, name) => (Object.hasOwn(factors, name) ? factors[name] : undefined);

  // A lower bound of the sum of w log det S, or of w (k + log det(Y / w)), over the cones.
  function logDetSum(program, name, s, dual, factors) {
    return program.logDets.reduce((total, { index, weight }) => {
      const [kind, order, start, stop] = program.blocks[index];
      const where = `${name} ${index}`;
      const found = triangle(kind, order, part(s, start, stop), dual);
      total = plus(total, times(weight, logDet(where, found, named(factors, where), 0n)));
      if (!dual) return total;
      return plus(total, times(times(weight, fraction(BigInt(order))), minus(fraction(1n), logOf(weight, 1n))));
    }, ZERO);
  }

  // The sum of -w log det of the constants, rounded up or down.
  function constantOf(program, up) {
    return program.constants.reduce((total, { matrix: found, weight }) => {
      const side = weight.n > 0n ? 1n - up : up;
      return minus(total, times(weight, logDet("a constant", found, undefined, side)));
    }, ZERO);
  }

  // With `definite`, the cones that have a log det are left to `logDetSum`.
  function needInCones(program, name, s, dual, factors, definite = false) {
    program.blocks.forEach(([kind, size, start, stop], index) => {
      if (definite && program.logDets.some((other) => other.index === index)) return;
      const where = `${name} ${index}`;
      const factor = Object.hasOwn(factors, where) ? factors[where] : undefined;
      needInCone(where, kind, size, part(s, start, stop), dual, factor);
    });
  }

  function factorsOf(witness) {
    const found = witness.factors === undefined ? {} : witness.factors;
    need(isObject(found) && Object.values(found).every((factor) => factor !== null), "factors are given by name");
    return found;
  }

  const halfOf = (a) => fraction(a.n, 2n * a.d);

  const slackOf = (program, x) => sum(program.b, product(program.A, x), fraction(-1n));
  const objectiveOf = (program, x) => plus(halfOf(dot(curved(program.P, x), x)), dot(program.c, x));

  // A point that satisfies all constraints.
  function pointOf(program, witness) {
    const x = vector("x", witness.x, program.n);
    needInCones(program, "slack", slackOf(program, x), false, factorsOf(witness), true);
    program.quadratics.forEach(({ P, q, r }, index) => {
      const value = plus(halfOf(dot(curved(P, x), x)), dot(q, x));
      need(compare(value, r) <= 0, `quadratic constraint ${index} is violated`);
    });
    return x;
  }

  function valueAt(program, witness) {
    const x = pointOf(program, witness);
    const logs = logDetSum(program, "slack", slackOf(program, x), false, factorsOf(witness));
    return minus(plus(objectiveOf(program, x), constantOf(program, 1n)), logs);
  }

  function boundBy(program, witness, withObjective) {
    const { n, quadratics } = program;
    const y = vector("y", witness.y, program.A.rows);
    const factors = factorsOf(witness);
    needInCones(program, "multipliers", y, true, factors, withObjective);
    let H = withObjective ? program.P : empty(n);
    let gradient = product(program.A, y, false, true);
    if (withObjective) gradient = sum(gradient, program.c);
    let value = minus(ZERO, dot(program.b, y));
    if (withObjective) value = plus(value, plus(constantOf(program, 0n), logDetSum(program, "multipliers", y, true, factors)));
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

  // The tightest bounds of variables that nonnegative rows with a single entry state.
  function boundsOf(program) {
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
    return { below, above };
  }

  function largestSquare(program, w, places) {
    const { below, above } = boundsOf(program);
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

  function endsOfCone(program, witness) {
    need("x" in witness, "no point is given");
    return ["y" in witness ? boundBy(program, witness, true) : null, valueAt(program, witness)];
  }

  // The rule of saddle programs: parts are {k, i, j, value, over, below, positive, variables}.

  function readPart(data, left, right) {
    need(isObject(data), "a part has left, row, column and value");
    const [k, i, j] = ["left", "row", "column"].map((name) => integers(name, data[name]));
    need(k.length === i.length && k.length === j.length, "a part has indices of different lengths");
    const seen = new Set();
    k.forEach((_, at) => {
      const inside = k[at] >= 0 && k[at] < left && j[at] >= 0 && j[at] <= i[at] && i[at] < right;
      need(inside, "a part is outside");
      seen.add(`${k[at]} ${i[at]} ${j[at]}`);
    });
    need(seen.size === k.length, "a part has an entry twice");
    const { of: value, over: common } = vector("value", data.value, k.length);
    let below = null;
    if ("over" in data) {
      below = whole("over", data.over);
      need(below < right, "a part is over a variable that is not there");
    }
    const positive = data["positive part"] === undefined ? false : data["positive part"];
    need(typeof positive === "boolean", "positive part is true or false");
    const supports = new Map();
    value.forEach((each, at) => {
      if (each === 0n) return;
      if (!supports.has(k[at])) supports.set(k[at], new Set());
      supports.get(k[at]).add(i[at]).add(j[at]);
    });
    const variables = positive ? [...supports.keys()].sort((a, b) => a - b) : [];
    return { k, i, j, value, over: common, below, positive, variables, supports, size: right };
  }

  // Q(x), or a single Q_k
  function matrixOf(part, x, only = null) {
    const total = new Map();
    part.value.forEach((value, at) => {
      if (only !== null && part.k[at] !== only) return;
      const key = part.i[at] * part.size + part.j[at];
      total.set(key, (total.get(key) || 0n) + (x === null ? value : value * x.of[part.k[at]]));
    });
    const keys = [...total.keys()].filter((key) => total.get(key) !== 0n);
    return {
      rows: part.size,
      columns: part.size,
      row: keys.map((key) => Math.floor(key / part.size)),
      column: keys.map((key) => key % part.size),
      value: keys.map((key) => total.get(key)),
      over: x === null ? part.over : part.over * x.over,
    };
  }

  const squaresOf = (y, places) => {
    let total = 0n;
    for (const j of places) total += y.of[j] * y.of[j];
    return fraction(total, y.over * y.over);
  };
  const rootBelow = (value) => fraction(integerRoot((value.n << (2n * BITS)) / value.d), ONE);
  const rootAbove = (value) => plus(rootBelow(value), fraction(1n, ONE));

  function vectorOf(values) {
    const common = values.reduce((total, value) => lcm(total, value.d), 1n);
    return { of: values.map((value) => value.n * (common / value.d)), over: common };
  }

  const diagonalOf = (n, places, value) => ({
    rows: n,
    columns: n,
    row: places,
    column: places,
    value: places.map(() => value.n),
    over: value.d,
  });

  function readSaddle(data) {
    for (const side of ["left", "right"]) {
      need(isObject(data[side]), `${side} is missing`);
      need(!("log det" in data[side]), "a side has a log det");
    }
    const left = readProgram(data.left);
    const right = readProgram(data.right);
    const none = { rows: left.n, columns: right.n, row: [], column: [], value: [], over: 1n };
    const M = "M" in data ? matrix("M", data.M, left.n, right.n) : none;
    const parts = list("parts", data.parts === undefined ? [] : data.parts).map((each) => readPart(each, left.n, right.n));
    const isSigned = (below, j) => below.has(j) && below.get(j).n >= 0n;
    const onLeft = boundsOf(left).below;
    const onRight = boundsOf(right).below;
    for (const each of parts) {
      need(each.variables.every((k) => isSigned(onLeft, k)), "the weight of a positive part may be negative");
      need(each.below === null || isSigned(onRight, each.below), "what a part is over may be negative");
    }
    return { ...units(data), left, right, M, parts };
  }

  function endsOfSaddle(program, witness) {
    const { left, right } = program;
    for (const side of ["left", "right"]) need(isObject(witness[side]), `the witness has no ${side}`);
    const phi = shiftsOf(program, witness);
    const x = pointOf(left, witness.left);
    const y = pointOf(right, witness.right);
    const low = boundBy(programOfX(program, y, phi), witness.left, true);
    const { lost, rest } = programOfY(program, x, phi, witness);
    const high = boundBy(rest, witness.right, true);
    return [minus(low, objectiveOf(right, y)), minus(plus(objectiveOf(left, x), lost), high)];
  }

  // By how much each matrix that stands for its positive part fails to be semidefinite at most.
  function shiftsOf({ parts }, witness) {
    const pairs = parts.flatMap((each, p) => each.variables.map((k) => [p, k]));
    const found = new Map();
    if (pairs.length === 0) return found;
    const given = vector("phi", witness.phi, pairs.length);
    need(given.of.every((value) => value >= 0n), "phi is negative");
    const factors = factorsOf(witness);
    pairs.forEach(([p, k], index) => {
      const each = parts[p];
      const phi = entry(given, index);
      const places = [...each.supports.get(k)].sort((a, b) => a - b);
      const name = `kernel ${p} ${k}`;
      const shifted = matrixSum(matrixOf(each, null, k), diagonalOf(each.size, places, phi), fraction(1n));
      needSemidefinite(name, shifted, named(factors, name));
      found.set(`${p} ${k}`, phi);
    });
    return found;
  }

  function programOfX({ left, M, parts }, y, phi) {
    const change = new Array(left.n).fill(ZERO);
    parts.forEach((each, p) => {
      let below = fraction(1n);
      if (each.below !== null) {
        below = entry(y, each.below);
        need(below.n > 0n, "what a part is over is 0");
      }
      const forms = new Map();
      each.value.forEach((value, at) => {
        if (value === 0n) return;
        const [k, i, j] = [each.k[at], each.i[at], each.j[at]];
        forms.set(k, (forms.get(k) || 0n) + value * y.of[i] * y.of[j] * (i === j ? 1n : 2n));
      });
      for (const [k, form] of forms) {
        let value = fraction(form, each.over * y.over * y.over);
        if (each.positive) value = plus(value, times(phi.get(`${p} ${k}`), squaresOf(y, each.supports.get(k))));
        change[k] = minus(change[k], halfOf(over(value, below)));
      }
    });
    return { ...left, c: sum(sum(left.c, product(M, y)), vectorOf(change)) };
  }

  function programOfY({ right, M, parts }, x, phi, witness) {
    let P = right.P;
    let c = sum(right.c, product(M, x, false, true), fraction(-1n));
    let lost = ZERO;
    const given = list("parts", witness.parts === undefined ? [] : witness.parts);
    const factors = factorsOf(witness);
    parts.forEach((each, p) => {
      const Q = matrixOf(each, x);
      if (each.below === null) {
        P = matrixSum(P, Q, fraction(1n));
        return;
      }
      need(given.length === parts.length, "parts of the witness are one for each part");
      const w = vector("a part", given[p], each.size);
      const Qw = curved(Q, w);
      let square = dot(Qw, w);
      if (!each.positive) needSemidefinite(`part ${p}`, Q, named(factors, `part ${p}`));
      for (const k of each.variables) {
        const charge = times(entry(x, k), phi.get(`${p} ${k}`));
        if (charge.n === 0n) continue;
        const places = [...each.supports.get(k)];
        const size = squaresOf(w, places);
        const origin = { of: new Array(each.size).fill(0n), over: 1n };
        square = plus(square, times(charge, size));
        lost = plus(lost, times(charge, rootAbove(times(size, largestSquare(right, origin, places)))));
      }
      const change = new Array(each.size).fill(ZERO);
      change[each.below] = minus(ZERO, halfOf(square));
      c = sum(sum(c, Qw), vectorOf(change));
    });
    return { lost, rest: { ...right, P, c } };
  }

  // The rule of graphs

  function readGraph(data) {
    const n = whole("points", data.points, 1);
    const gamma = number(data.gamma);
    need(gamma.n > 0n, "gamma is not positive");
    return { ...units(data), n, G: symmetric("G", data.G, n), S: symmetric("S", data.S, n), gamma };
  }

  function endsOfGraph({ n, G, S, gamma }, witness) {
    const every = Array.from({ length: n }, (_, i) => i);
    const shifted = (given, by) => {
      need(by.n >= 0n, "a shift is negative");
      return matrixSum(given, diagonalOf(n, every, by), fraction(1n));
    };
    const optional = (name) => number(witness[name] === undefined ? "0x0" : witness[name]);
    const traceOf = (given) => {
      let total = 0n;
      given.value.forEach((value, k) => (total += given.row[k] === given.column[k] ? value : 0n));
      return fraction(total, given.over);
    };
    const phi = optional("phi");
    const H = shifted(G, phi);
    const columns = every.map((j) => curved(H, { of: every.map((i) => (i === j ? 1n : 0n)), over: 1n }));
    const images = columns.map((column) => curved(S, column));
    const smooth = { rows: n, columns: n, row: [], column: [], value: [], over: H.over * images[0].over };
    for (let j = 0; j < n; j++) {
      for (let i = j; i < n; i++) {
        let total = 0n;
        for (let k = 0; k < n; k++) total += columns[i].of[k] * images[j].of[k];
        smooth.row.push(i);
        smooth.column.push(j);
        smooth.value.push(total);
      }
    }
    const Y = matrixSum(H, smooth, gamma);
    const factors = factorsOf(witness);
    let low = minus(logDet("Y", Y, named(factors, "Y below"), 0n), logDet("H", H, named(factors, "H above"), 1n));
    let high = minus(logDet("Y", Y, named(factors, "Y above"), 1n), logDet("H", H, named(factors, "H below"), 0n));
    if (phi.n > 0n) {
      const epsilon = optional("epsilon");
      const raised = shifted(S, epsilon);
      needSemidefinite("S + epsilon I", raised, named(factors, "S"));
      const small = times(gamma, epsilon);
      const room = minus(fraction(1n), times(small, traceOf(H)));
      need(room.n > 0n, "epsilon is too large");
      low = minus(low, times(times(gamma, phi), traceOf(raised)));
      high = plus(high, over(times(times(fraction(BigInt(n)), phi), small), room));
    }
    return [low, high];
  }

  // The rule of levels

  function readLevels(data) {
    const n = whole("directions", data.directions, 1);
    const r = vector("r", data.r, n);
    const A = vector("A", data.A, n);
    const norm = number(data.norm);
    need(norm.n > 0n && r.of.some((value) => value > 0n), "the norm, or every r, is not positive");
    need([...r.of, ...A.of].every((value) => value >= 0n), "r or A has a negative entry");
    const pairs = r.of.map((_, i) => [entry(r, i), entry(A, i)]).sort((a, b) => compare(b[0], a[0]));
    return { ...units(data), norm, pairs };
  }

  function endsOfLevels({ norm, pairs }, witness) {
    const level = number(witness.level);
    need(level.n >= 0n && compare(level, pairs[0][0]) < 0, "the level is not on the curve");
    let [N, D] = [ZERO, ZERO];
    for (const [r, A] of pairs) {
      if (compare(r, level) <= 0) continue;
      const gap = minus(r, level);
      N = plus(N, times(gap, A));
      D = plus(D, times(gap, gap));
    }
    // On each piece N = a0 - a1 t and D = d0 - 2 d1 t + k t^2.
    let [best, a0, a1, d0, d1] = [ZERO, ZERO, ZERO, ZERO, ZERO];
    pairs.forEach(([r, A], at) => {
      [a0, a1] = [plus(a0, times(r, A)), plus(a1, A)];
      [d0, d1] = [plus(d0, times(r, r)), plus(d1, r)];
      const low = at + 1 < pairs.length ? pairs[at + 1][0] : ZERO;
      if (compare(low, r) === 0) return;
      const k = fraction(BigInt(at + 1));
      const places = [low];
      const turn = minus(times(a1, d1), times(a0, k));
      if (turn.n !== 0n) {
        const t = over(minus(times(a1, d0), times(a0, d1)), turn);
        if (compare(low, t) < 0 && compare(t, r) < 0) places.push(t);
      }
      for (const t of places) {
        const above = minus(a0, times(a1, t));
        const below = plus(minus(d0, times(times(fraction(2n), d1), t)), times(k, times(t, t)));
        const found = over(times(above, above), below);
        if (compare(found, best) > 0) best = found;
      }
    });
    return [over(rootBelow(over(times(N, N), D)), norm), over(rootAbove(best), norm)];
  }

  // The rule of ordered energies: numbers between low and high, in units of 2^-256, or its cube.

  function readEnergies(data) {
    const n = whole("points", data.points, 1);
    const sigma = number(data.sigma);
    need(sigma.n >= sigma.d, "sigma is below 1");
    const T = symmetric("T", data.T, n);
    const V = list("V", data.V).map((column) => vector("a column of V", column, n));
    need(V.length > 0, "V has no columns");
    const ends = new Map();
    for (const value of [0n, ...T.value]) {
      if (ends.has(value)) continue;
      const t = fraction(value, T.over);
      need(abs(t.n) <= 64n * t.d, "an entry of T is out of range");
      let [low, high] = [0n, 1n].map((up) => expOf(fraction(abs(t.n), t.d), up));
      if (t.n < 0n) [low, high] = [over(fraction(1n), high), over(fraction(1n), low)];
      ends.set(value, { low: floor(low.n * ONE, low.d), high: floor(high.n * ONE, high.d) + 1n });
    }
    const W = Array.from({ length: n }, () => new Array(n).fill(ends.get(0n)));
    T.value.forEach((value, k) => (W[T.row[k]][T.column[k]] = W[T.column[k]][T.row[k]] = ends.get(value)));
    const cube = ONE * ONE * ONE;
    const roots = W.map((row) => {
      const low = row.reduce((total, w) => total + w.low, 0n);
      const high = row.reduce((total, w) => total + w.high, 0n);
      return { low: integerRoot(cube / high), high: integerRoot(cube / low) + 1n };
    });
    return { ...units(data), n, sigma, V, W, roots };
  }

  function endsOfEnergies({ n, sigma, V, W, roots }) {
    let [weight, total, low, high] = [fraction(1n), ZERO, ZERO, ZERO];
    let best = null;
    for (const v of V) {
      let [least, most] = [0n, 0n];
      for (let i = 0; i < n; i++) {
        for (let j = 0; j <= i; j++) {
          const term = v.of[i] * v.of[j] * (i === j ? 1n : 2n);
          if (term === 0n) continue;
          const small = term * W[i][j].low * roots[i].low * roots[j].low;
          const large = term * W[i][j].high * roots[i].high * roots[j].high;
          least += term > 0n ? small : large;
          most += term > 0n ? large : small;
        }
      }
      const square = dot(v, v);
      const common = v.over * v.over * ONE * ONE * ONE;
      low = plus(low, times(weight, minus(square, fraction(most, common))));
      high = plus(high, times(weight, minus(square, fraction(least, common))));
      total = plus(total, weight);
      const means = [over(low, total), over(high, total)];
      best = best === null ? means : best.map((end, side) => (compare(means[side], end) < 0 ? means[side] : end));
      weight = over(weight, sigma);
    }
    return best;
  }

  // The rule of polynomial programs: a Map from the exponents, as text, to the factor.

  const powers = (key) => (key === "" ? [] : key.split(",").map(Number));

  function polyPlus(p, q, factor = fraction(1n)) {
    const total = new Map(p);
    for (const [key, value] of q) {
      const sum = plus(total.get(key) ?? ZERO, times(factor, value));
      if (sum.n === 0n) total.delete(key);
      else total.set(key, sum);
    }
    return total;
  }

  function polyTimes(p, q) {
    need(p.size * q.size <= MAX_TERMS, "a product has too many terms");
    const total = new Map();
    for (const [one, a] of p) {
      const left = powers(one);
      for (const [other, b] of q) {
        const right = powers(other);
        const sums = left.map((power, i) => power + right[i]);
        need(sums.reduce((a, b) => a + b, 0) <= MAX_DEGREE, "a monomial has a degree out of range");
        const key = sums.join();
        const sum = plus(total.get(key) ?? ZERO, times(a, b));
        if (sum.n === 0n) total.delete(key);
        else total.set(key, sum);
      }
    }
    return total;
  }

  // A number, the index of a variable, or ["+", ..], ["*", ..], ["^", expression, exponent].
  function expanded(n, part, depth = 0) {
    need(depth <= MAX_DEPTH, "an expression is nested too deeply");
    const monomial = (k) => Array.from({ length: n }, (_, i) => (i === k ? 1 : 0)).join();
    if (typeof part === "string") {
      const value = number(part);
      return new Map(value.n === 0n ? [] : [[monomial(-1), value]]);
    }
    if (!Array.isArray(part)) {
      const k = whole("a variable", part);
      need(k < n, "there is no such variable");
      return new Map([[monomial(k), fraction(1n)]]);
    }
    const [sign, ...inner] = part;
    need(inner.length > 0 && ["+", "*", "^"].includes(sign), "an expression has no operator");
    let parts;
    if (sign === "^") {
      need(inner.length === 2, "a power has one exponent");
      const power = whole("an exponent", inner[1], 1);
      need(power <= Number(MAX_POWER), "an exponent is out of range");
      parts = new Array(power).fill(expanded(n, inner[0], depth + 1));
    } else parts = inner.map((each) => expanded(n, each, depth + 1));
    return parts.reduce((total, each) => (sign === "+" ? polyPlus(total, each) : polyTimes(total, each)));
  }

  function readPolynomials(data) {
    const names = list("variables", data.variables);
    need(names.every((name) => typeof name === "string"), "a variable has no name");
    const n = names.length;
    const all = (name) => list(name, data[name] === undefined ? [] : data[name]).map((part) => expanded(n, part));
    const objective = expanded(n, data.objective);
    return { ...units(data), n, objective, nonnegative: all("nonnegative"), zero: all("zero") };
  }

  function endsOfPolynomials({ n, objective, nonnegative, zero }, witness) {
    const x = vector("x", witness.x, n);
    const valueOf = (p) => {
      let total = ZERO;
      for (const [key, factor] of p) {
        let term = factor;
        powers(key).forEach((power, i) => {
          for (let k = 0; k < power; k++) term = times(term, entry(x, i));
        });
        total = plus(total, term);
      }
      return total;
    };
    const chosen = (parts, index) => {
      const k = whole("a constraint", index);
      need(k < parts.length, "there is no such constraint");
      return parts[k];
    };
    const optional = (data, name, other) => (data[name] === undefined ? other : data[name]);
    need(nonnegative.every((g) => valueOf(g).n >= 0n), "the point violates a constraint");
    need(zero.every((h) => valueOf(h).n === 0n), "the point violates an equation");
    let rest = objective;
    for (const square of list("squares", optional(witness, "squares", []))) {
      need(isObject(square), "a square is no object");
      const weight = number(optional(square, "weight", "0x1"));
      need(weight.n >= 0n, "a square has a negative weight");
      const root = expanded(n, square.of);
      let term = polyTimes(root, root);
      for (const k of list("times", optional(square, "times", []))) term = polyTimes(term, chosen(nonnegative, k));
      rest = polyPlus(rest, term, minus(ZERO, weight));
    }
    for (const part of list("zeros", optional(witness, "zeros", []))) {
      need(isObject(part), "a multiple of an equation is no object");
      rest = polyPlus(rest, polyTimes(expanded(n, part.of), chosen(zero, part.times)), fraction(-1n));
    }
    const constant = new Array(n).fill(0).join();
    need([...rest.keys()].every((key) => key === constant), "the squares do not add up to the objective");
    return [rest.get(constant) ?? ZERO, valueOf(objective)];
  }

  const RULES = {
    "cone program": [readProgram, endsOfCone],
    "saddle program": [readSaddle, endsOfSaddle],
    "graph log det": [readGraph, endsOfGraph],
    "alignment level": [readLevels, endsOfLevels],
    "ordered energies": [readEnergies, endsOfEnergies],
    "polynomial program": [readPolynomials, endsOfPolynomials],
  };

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
    need(typeof problem.rule === "string" && Object.hasOwn(RULES, problem.rule), "there is no such rule");
    const [readRule, endsOf] = RULES[problem.rule];
    const isCone = problem.rule === "cone program";
    need(data.digest === sha256(canonical(problem)), "the digest is that of another problem");
    const program = readRule(problem);
    if (isCone && claim.verdict === "INFEASIBLE") {
      need(boundBy(program, witness, false).n > 0n, "the multipliers prove no contradiction");
      return "INFEASIBLE: no point satisfies the constraints";
    }
    if (isCone && claim.verdict === "UNBOUNDED") {
      valueAt(program, witness);
      needRay(program, witness);
      return "UNBOUNDED: from a feasible point the objective improves without end";
    }
    need(claim.verdict === "OPTIMAL" || claim.verdict === "FEASIBLE", "there is no such verdict");
    const user = (value) => (value === null ? null : plus(times(program.scale, value), program.shift));
    const [low, high] = endsOf(program, witness).map(user);
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
