"use strict";
// Reads what the page carries: a description in JSON, and typed arrays in base64 that may be deflated.

const description = JSON.parse(document.getElementById("description").textContent);

async function unpack(packed) {
  const element = document.getElementById(packed.id);
  let bytes = fromBase64(element.textContent);
  element.remove(); // the text is as large as the array
  if (packed.packed) {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  }
  if (packed.kind === "texts") return JSON.parse(new TextDecoder().decode(bytes));
  return new globalThis[packed.kind](bytes.buffer);
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text); // ten times as fast where a browser has it
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

async function unpackAll() {
  for (const view of description.views) view.coordinates = await Promise.all(view.coordinates.map(unpack));
  for (const column of description.columns) column.values = await unpack(column.values);
}

// The value of a row for a reader: a number, a word, or "" where there is none.
function valueOf(column, row) {
  const value = column.values[row];
  if (column.kind === "category") return value < 0 ? "" : column.words[value];
  if (column.kind === "text") return value;
  return Number.isNaN(value) ? "" : value;
}

function textOf(column, row) {
  const value = valueOf(column, row);
  return typeof value === "number" ? format(value) : value;
}

function format(value) {
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(3) : String(Number(value.toPrecision(5)));
}

// The rows that a search asks for: "#12", "column > 3", or a word that occurs in any column.
function found(query) {
  const rows = [];
  const test = tester(query.trim());
  for (let row = 0; row < description.n; row++) if (test(row)) rows.push(row);
  return rows;
}

function tester(query) {
  if (/^#\d+$/.test(query)) return (row) => row === Number(query.slice(1));
  const parts = /^(.+?)\s*(<=|>=|<|>|=)\s*(.+)$/.exec(query);
  const column = parts && description.columns.find((each) => each.name.toLowerCase() === parts[1].toLowerCase());
  return column ? comparison(column, parts[2], parts[3]) : occurrence(query.toLowerCase());
}

function comparison(column, sign, wanted) {
  const number = Number(wanted);
  return (row) => {
    const value = valueOf(column, row);
    if (value === "") return false;
    if (Number.isNaN(number)) return sign === "=" && String(value).toLowerCase() === wanted.toLowerCase();
    const own = Number(value);
    return { "=": own === number, "<": own < number, ">": own > number, "<=": own <= number, ">=": own >= number }[sign];
  };
}

function occurrence(query) {
  const tests = description.columns.map((column) => {
    if (column.kind === "number") {
      const number = query === "" ? NaN : Number(query);
      return (row) => column.values[row] === number;
    }
    if (column.kind === "text") return (row) => column.values[row].toLowerCase().includes(query);
    const hits = column.words.map((word) => word.toLowerCase().includes(query)); // a category is searched once
    return (row) => column.values[row] >= 0 && hits[column.values[row]];
  });
  return (row) => query !== "" && tests.some((test) => test(row));
}
