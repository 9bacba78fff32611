"""Requirements of ingestion, which the bases share."""

from tests.requirements.model import Requirement

INGEST = (
    Requirement(
        "documents:ratio",
        "The image ratio decides by IMAGE_RATIO_THRESHOLD, "
        "counted over pages with hardly any text, and a scan that can be read is not skipped.",
    ),
    Requirement(
        "ingest:formats",
        "Word, OpenDocument, Excel, CSV, HTML, Markdown, text, RTF, e-mail, Outlook and zip files "
        "are read, as are answers in PDF forms and the text of annotations.",
    ),
    Requirement(
        "ingest:formats:hostile",
        "Bombs, entities, endless nesting, paths that lead out, links and encrypted files are "
        "refused with a reason; macros are never looked at.",
    ),
    Requirement("ingest:formats:cut", "A file that ends early is told to be a broken download."),
    Requirement(
        "ingest:pictures",
        "A page is drawn as lossless WebP and kept by hash, page and resolution, and a passage is "
        "marked on it, on scans too.",
    ),
    Requirement("documents:render", "A file named like a rendering never goes to OCR."),
    Requirement(
        "documents:textlayer",
        "The text layer is read first, and a page under 10 characters goes to OCR at 300 DPI.",
    ),
    Requirement(
        "documents:confidence",
        "OCR confidence is averaged per page, and a page under 70 % is logged at WARNING.",
    ),
    Requirement(
        "documents:method",
        "Each page records text_layer or ocr, and the document text_layer, ocr or mixed.",
    ),
    Requirement(
        "documents:classify",
        "The thirteen types are found by filename, then by content, then fall back to other.",
    ),
    Requirement(
        "documents:drawings",
        "contains_drawings is true for a page over the image threshold, "
        "or a filename of a plan, an elevation or a rendering.",
    ),
    Requirement(
        "documents:ocr:off",
        "With ENABLE_OCR=false blank pages stay blank and are reported.",
    ),
    Requirement(
        "ingest:sandbox:failures",
        "An abort, a crash, a hang or too much memory in the process that reads a file is told as "
        "extraction_failed, and an unforeseen reason is in the log.",
    ),
    Requirement(
        "ingest:sandbox:time",
        "Reading ends at the wall limit, after a long silence, or when it says too much.",
    ),
    Requirement(
        "ingest:sandbox:group",
        "The process is killed with all it has started, when it fails, when its caller gives up "
        "and when the server dies, and leaves no file behind.",
    ),
    Requirement("ingest:sandbox:seats", "No more processes run at once than there are cores."),
    Requirement("ingest:sandbox:secrets", "The process that reads a file knows no secret."),
    Requirement(
        "ingest:sandbox:confined",
        "A reader of files that was taken over reads no key, writes nowhere but in its scratch "
        "folder, opens no socket and signals nobody; where the kernel offers less, it is told.",
    ),
    Requirement(
        "ingest:sandbox:callers", "One caller never has all the processes that may run at once."
    ),
    Requirement(
        "ingest:sandbox:scratch",
        "Copies and scratch folders are in the data directory, and a killed server's are swept.",
    ),
    Requirement(
        "ingest:uploads",
        "An upload is written to the data directory as it arrives; four are received at once, "
        "three of one caller, and one that stalls is ended.",
    ),
    Requirement("ingest:caller-left", "A REST ingest ends when its caller has left."),
    Requirement("ingest:chunks:cap", "A document of more chunks than the cap is refused."),
    Requirement("ingest:ocr:blank", "A page without ink is not given to tesseract."),
    Requirement(
        "ingest:growth", "Twice as much text never takes more than about twice as long to read."
    ),
    Requirement("ingest:sandbox:progress", "Progress is told page by page."),
    Requirement(
        "ingest:hostile",
        "Every file made to harm is a typed error within its limits, with no process left.",
    ),
    Requirement(
        "ingest:corpus",
        "Every real document gives an answer or a typed error, in one process that survives.",
    ),
    Requirement(
        "ingest:roots",
        "A file is read from inside the roots only, whatever links and names say, up to a size, "
        "and is hashed and parsed from the same bytes.",
    ),
    Requirement(
        "ingest:settings",
        "Roots, size, time, OCR and the rule for pictures are what the settings say.",
    ),
    Requirement(
        "ingest:classify",
        "A file's type is found by whole words of its name as files are really named, else by "
        "what its text says, else it is other, with the confidence of each.",
    ),
    Requirement("ingest:renderings", "A rendering is known by its name."),
    Requirement(
        "ingest:text:furniture",
        "Running headers, footers and page numbers are in a page's text, not in the document's.",
    ),
    Requirement(
        "ingest:text:paragraphs",
        "Paragraphs are parted by a blank line, also where only the distance shows it.",
    ),
    Requirement(
        "ingest:text:hyphens",
        "A word broken at the end of a line is mended the way the document writes it elsewhere.",
    ),
    Requirement("ingest:text:normal", "Ligatures and exotic signs are normalised, ½ and ² kept."),
    Requirement(
        "ingest:text:order",
        "A page that its file holds layer by layer is read from top to bottom.",
    ),
    Requirement("ingest:text:turned", "A turned page reads like an upright one."),
    Requirement("ingest:text:labels", "A page knows its number and its printed label."),
    Requirement(
        "ingest:text:encrypted",
        "An encrypted file opens with an empty password, or says that it needs one.",
    ),
    Requirement(
        "ingest:images:ratio",
        "The image ratio is the union of the images on the page, through the forms they lie in.",
    ),
    Requirement(
        "ingest:images:drawings",
        "A page over the image threshold or a name of a drawing makes a document contain drawings.",
    ),
    Requirement(
        "ingest:images:skip",
        "A document of pictures is skipped by its name, by a probe that finds no words, or by "
        "the literal ratio; text layers speak against it.",
    ),
    Requirement(
        "ingest:ocr:recall",
        "OCR finds at least 98 of 100 words of a clean render, and most of a real scan.",
    ),
    Requirement("ingest:ocr:method", "Each page and the document say how their text was read."),
    Requirement(
        "ingest:ocr:formats",
        "PNG, JPEG, BMP and TIFF files are read by what they are; a TIFF's frames are pages.",
    ),
    Requirement("ingest:ocr:turned", "A scan that lies on its side is turned."),
    Requirement("ingest:ocr:confidence", "A page that OCR is unsure of is logged as a WARNING."),
    Requirement("ingest:ocr:lines", "Paragraphs of a scan are paragraphs of the text."),
    Requirement("ingest:ocr:notes", "A page that could not be read says why."),
    Requirement(
        "ingest:chunks",
        "Chunks cover the text, know their pages and sections and never cross a section's start.",
    ),
    Requirement(
        "ingest:sections:framework",
        "In the Framework of December 2024, set by the tests, paragraphs 1 to 243 are all found "
        "under their chapters, and none is invented.",
    ),
    Requirement(
        "ingest:sections:draft",
        "In the draft Framework of December 2025 its 20 chapters and every policy are found.",
    ),
    Requirement(
        "ingest:sections:own-numbering",
        "Numbering that restarts inside a policy belongs to it, and goes on outside after it.",
    ),
    Requirement(
        "ingest:sections:decimal",
        "Decimal paragraphs, their headings and their tables are nested as they are numbered.",
    ),
    Requirement(
        "ingest:sections:mentions",
        "A cross-reference starts no section, wherever in a line it stands.",
    ),
    Requirement("ingest:sections:tables", "A table ends where the text around it goes on."),
    Requirement(
        "ingest:sections:contents",
        "A table of contents holds no sections; each section knows its title and its page.",
    ),
    Requirement(
        "ingest:sections:styles",
        "Policies are found whole and alone in plans of every usual typesetting and coding, made "
        "with the truth about them: columns, boxes, bars, capitals, titles below, repeated codes.",
    ),
    Requirement(
        "ingest:sections:plans",
        "In plans as published, a reference leads to its section, whole and exact; other documents "
        "have no policies of their own.",
    ),
    Requirement(
        "ingest:sections:codes",
        "A policy is found however its heading writes its code, and ends before what explains it.",
    ),
    Requirement(
        "ingest:sections:occurrences",
        "Of all places that name a policy, the section is the one that is the policy.",
    ),
    Requirement("ingest:sections:boxes", "A box around a policy is where it begins and ends."),
    Requirement(
        "ingest:sections:tails", "A heading without a number is no part of the section before it."
    ),
    Requirement(
        "ingest:sections:plain",
        "Numbered paragraphs are found in a document without any typography.",
    ),
    Requirement("ingest:sections:rising", "Paragraph numbers form one rising sequence."),
)
