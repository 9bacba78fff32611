// What no form can do: `/` goes to the search box, a citation is copied, an upload shows how much was sent.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  const box = document.querySelector("input[type=search]");
  if (!box) return;
  event.preventDefault();
  box.focus();
});
// A refused form comes back as a page; sending its files once more would only repeat the refusal.
function showAnswer(form, html) {
  const answered = new DOMParser().parseFromString(html, "text/html").querySelector("main");
  if (!answered) return form.submit();
  document.querySelector("main").replaceWith(answered);
  answered.querySelector("[role=alert]")?.scrollIntoView();
}
document.addEventListener("submit", (event) => {
  const form = event.target;
  const bar = form.querySelector("progress[data-sent]");
  if (!bar || !window.FormData) return;
  event.preventDefault();
  const request = new XMLHttpRequest();
  request.upload.addEventListener("progress", (sent) => {
    if (sent.lengthComputable) bar.value = (100 * sent.loaded) / sent.total;
  });
  request.addEventListener("load", () => {
    if (request.status < 400) window.location.assign(request.responseURL);
    else showAnswer(form, request.responseText);
  });
  request.addEventListener("error", () => form.submit());
  bar.hidden = false;
  request.open("POST", form.action);
  request.setRequestHeader("Accept", "text/html");
  request.send(new FormData(form));
});
if (navigator.clipboard) {
  document.documentElement.classList.add("can-copy");
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  });
}
