// `application_overview`: the documents of an application by kind, what is missing, what was not read.
const words = (kind) => kind.replaceAll("_", " ");
function draw(answer) {
  const record = answer.application ?? {};
  const facts = ["address", "description", "validation_date", "status"].filter((name) => record[name]).map((name) => [words(name), String(record[name])]);
  const rows = answer.types.map((type) => [words(type.document_type), type.document_count, type.page_count, type.documents.map((document) => document.source_file).join(", ")]);
  const lists = [
    answer.not_ingested.length ? el("p", {}, el("b", {}, "Not read: "), answer.not_ingested.map((file) => `${file.source_file ?? file.file ?? ""} (${file.reason ?? ""})`).join("; ")) : null,
    answer.missing_types.length ? el("p", {}, el("b", {}, "Missing: "), answer.missing_types.map(words).join(", ")) : null,
    answer.pages_without_text_count ? el("p", {}, `${answer.pages_without_text_count} pages gave no text.`) : null,
  ].filter(Boolean);
  return {
    content: [
      el("h1", {}, `Application ${answer.application_ref}`),
      ...(facts.length ? [table(["Record", "Value"], facts)] : []),
      el("p", {}, `${answer.document_count} documents, ${answer.page_count} pages.`),
      table(["Kind", "Documents", "Pages", "Files"], rows),
      ...lists,
    ],
    path: `/applications/view?${new URLSearchParams({ ref: answer.application_ref })}`,
    question: `What is missing from application ${answer.application_ref}, and does it matter?`,
  };
}
