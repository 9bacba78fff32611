// What no form can do: `/` goes to the search box, and a file upload shows how much was sent.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  const box = document.querySelector("input[type=search]");
  if (!box) return;
  event.preventDefault();
  box.focus();
});
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
    else form.submit();
  });
  request.addEventListener("error", () => form.submit());
  bar.hidden = false;
  request.open("POST", form.action);
  request.send(new FormData(form));
});
