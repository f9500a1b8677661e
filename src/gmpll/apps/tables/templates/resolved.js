"use strict";
(() => {
  const list = document.getElementById("rows");
  const tools = document.getElementById("tools");
  if (!list || !tools) return;
  const rows = Array.from(list.children);
  const search = document.getElementById("search");
  const order = document.getElementById("order");
  const shown = document.getElementById("shown");
  const keys = {
    doubt: (row) => Number(row.dataset.place),
    outside: (row) => -Number(row.dataset.outside),
    margin: (row) => Number(row.dataset.margin),
  };
  const texts = rows.map((row) => row.textContent.toLocaleLowerCase());

  const show = () => {
    const words = search.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, place) => {
      row.hidden = !words.every((word) => texts[place].includes(word));
      count += row.hidden ? 0 : 1;
    });
    shown.textContent = count === rows.length ? `${count} rows` : `${count} of ${rows.length} rows`;
  };
  const sort = () => {
    const key = keys[order.value];
    const compare = key
      ? (a, b) => key(a) - key(b)
      : (a, b) => a.dataset[order.value].localeCompare(b.dataset[order.value], undefined, { numeric: true });
    list.append(...[...rows].sort((a, b) => compare(a, b) || keys.doubt(a) - keys.doubt(b)));
  };
  search.addEventListener("input", show);
  order.addEventListener("change", sort);
  tools.hidden = false;
  show();
})();
