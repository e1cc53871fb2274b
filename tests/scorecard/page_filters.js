const said = [];
const note = () => said.push(rows.filter(row => !row.hidden).map(row => row.cells[0].firstChild.textContent).join("+") +
  " " + document.querySelectorAll("td:not(.dim):not([hidden])").length);
const set = (id, value) => { document.getElementById(id).value = value; filter(); };
set("family", "damage"); note();
set("consumer", "bad-client"); note();
document.getElementById("clear").click(); note();
document.querySelector(".chip.loses-silently").click(); note();
document.querySelector(".chip.hangs").click(); note();
document.getElementById("clear").click();
document.getElementById("findings").checked = true; set("consumer", "good-client"); note();
document.getElementById("clear").click(); set("search", "PURGED position"); note();
set("search", "nothing like this"); note();
said.push(document.getElementById("nothing").hidden);
document.documentElement.dataset.said = said.join("\n");
