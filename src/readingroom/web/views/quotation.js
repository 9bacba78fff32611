// `verify_policy_quote`: whether the words stand there, and the page they stand on, marked.
const verdicts = { verified: "The words stand in the revision in force on that day.", wrong_revision: "The words stand in another revision, not in the one in force on that day.", not_found: "The words were not found." };
async function drawPage(place, quotation, frame) {
  const uri = `readingroom://page/${[place.source, place.revision_id, place.page_number].map(encodeURIComponent).join("/")}?${new URLSearchParams({ quotation })}`;
  const { contents: [picture] } = await ask("resources/read", { uri });
  const bytes = Uint8Array.from(atob(picture.blob), (character) => character.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], { type: picture.mimeType }));
  const canvas = el("canvas", { role: "img", "aria-label": `Page ${place.page_number}, with the quotation marked` });
  [canvas.width, canvas.height] = [bitmap.width, bitmap.height];
  const context = canvas.getContext("2d");
  context.drawImage(bitmap, 0, 0);
  context.globalCompositeOperation = "multiply";
  context.fillStyle = "#ffd54a";
  for (const [x, y, width, height] of picture._meta?.marks ?? []) context.fillRect(x * bitmap.width, y * bitmap.height, width * bitmap.width, height * bitmap.height);
  frame.replaceChildren(canvas);
  report();
}
function draw(answer, sent) {
  const quotation = sent.quote ?? "";
  const place = answer.found[0];
  const frame = el("div");
  const content = [el("h1", {}, `${answer.source} on ${answer.date}`), el("p", {}, el("b", {}, verdicts[answer.verdict])), el("blockquote", {}, quotation)];
  content.push(...(answer.unread_revisions ?? []).map((unread) => el("p", {}, el("b", {}, `A revision from ${unread.effective_from} could not be read.`))));
  content.push(...answer.found.map((found) => el("p", {}, found.citation, el("span", { class: "soft" }, `, ${span(found.effective_from, found.effective_to)}`))));
  if (answer.nearest) content.push(el("p", { class: "soft" }, `Nearest, alike by ${Math.round(answer.nearest.similarity * 100)} in 100, ${answer.nearest.section_ref}: ${answer.nearest.text}`));
  content.push(frame);
  if (place) drawPage({ source: answer.source, ...place }, quotation, frame).catch(() => frame.replaceChildren(el("p", { class: "soft" }, "The page cannot be shown here; open it in Reading Room.")));
  return {
    content,
    path: `/policies/check?${new URLSearchParams({ source: answer.source, date: answer.date, quote: quotation })}`,
    question: answer.verdict === "verified" ? "What does the rest of that section say?" : "What do the words in force say instead?",
  };
}
