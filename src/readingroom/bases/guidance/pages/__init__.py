"""Pages of GOV.UK: their HTML, their text as Markdown, their sections and addresses."""
