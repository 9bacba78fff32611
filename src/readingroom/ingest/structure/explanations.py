"""The lines below which a policy is only explained or measured: `Reasoned Justification`."""

import re

from readingroom.ingest.structure.typography import Typography

_EXPLAINING_HEADING_PATTERN = re.compile(
    r"(?:reasoned |policy |supporting )?(?:justification|explanation)|supporting text"
    r"|explanatory (?:text|notes?)|reasons? for (?:the )?policy|policy context"
    r"|(?:why|how) (?:is |will |(?:do )?we need )?(?:this|the) policy.{0,60}|rationale"
    r"|(?:see also|(?:related|relevant|linked) policies|cross[- ]references?)(?::.*)?",
    re.IGNORECASE,
)
_BOLD_EXPLAINING_HEADING_PATTERN = re.compile(
    r"(?:policy )?(?:background|context|delivery|implementation|monitoring|indicators?|evidence)"
    r"(?: and (?:delivery|implementation|monitoring|review))?|(?:primary|key) evidence"
    r"|(?:reasons|reasoning|rationale|context|justification)"
    r"(?: and (?:reasons|reasoning|rationale|(?:reasoned )?justification|intent|evidence))?"
    r"|(?:general )?conformity(?: (?:reference|with|to)\b.{0,60})?|interpretation|commentary"
    r"|(?:key )?(?:monitoring )?(?:indicators|targets)(?:: .{0,60})?|reasons?"
    r"|key (?:documents|links)|links to .{0,60}|policy links|monitoring framework"
    r"|alternative (?:options|approaches)(?: considered)?|options considered|evidence base"
    r"|(?:consultation )?question \d{1,3}\b.*",
    re.IGNORECASE,
)
# In bold too; right below the heading of a policy they may lead to its text.
_LATE_EXPLAINING_HEADING_PATTERN = re.compile(
    r"(?:supporting|further|background|useful|relevant) (?:information|evidence|guidance|reading"
    r"|documents?|references)|guidance|sources|references|purpose"
    r"|policy (?:intent|purpose|aims?|objectives?|application)|.{0,40}\bpolicy context"
    r"|(?:purpose|intent|aims?|objectives?|application|applying|background|implementation|reasons?"
    r"|justification|delivery|monitoring)(?: of| to| for)? (?:the|this) policy"
    r"|(?:why|how|what) .{0,40}\b(?:this|the) policy\b.{0,60}"
    r"|(?:related|relevant|linked) policies .{0,60}|reasoned justification (?:and |\().{0,60}"
    r"|(?:strategic|local plan|community|neighbourhood plan) objectives?"
    r"|(?:(?:strategic|local plan|community|neighbourhood plan) )?objectives? (?:met|delivered"
    r"|addressed|supported|achieved)",
    re.IGNORECASE,
)
_MAX_EXPLAINING_HEADING_CHARS = 80
# Words in bold that begin a paragraph about a policy.
_EXPLAINING_LABEL_PATTERN = re.compile(
    r"(?:policy links|(?:linked|related|relevant) policies|evidence base|key evidence"
    r"|(?:monitoring )?indicators?|targets"
    r"|(?:general )?conform(?:s|ity)(?: references?| with| to)?)\s*:\s",
    re.IGNORECASE,
)
# Words in the head of a table that says how a policy is measured: two of them.
_MONITORING_HEAD_WORD_PATTERN = re.compile(
    r"\b(?:indicators?|triggers?|targets?|monitoring|contingency|implementation|delivery|source"
    r"|frequency|responsib\w+)\b",
    re.IGNORECASE,
)
_INDICATOR_WORD_PATTERN = re.compile(r"\b(?:indicators?|triggers?)\b", re.IGNORECASE)


def is_explaining_heading(typography: Typography, line_index: int) -> bool:
    """Return whether a line is a heading such as `Reasoned Justification`."""
    line_text = typography.lines[line_index].line.text.rstrip(":")
    if not (
        typography.is_block_start(line_index)
        or (typography.is_emphasised(line_index) and typography.is_after_sentence(line_index))
    ):
        return False
    if typography.is_emphasised(line_index) and _EXPLAINING_LABEL_PATTERN.match(line_text):
        return True
    return len(line_text) <= _MAX_EXPLAINING_HEADING_CHARS and bool(
        _EXPLAINING_HEADING_PATTERN.fullmatch(line_text)
        or (
            # Capitals mark a heading as bold letters do.
            (typography.is_emphasised(line_index) or line_text.isupper())
            and (
                _BOLD_EXPLAINING_HEADING_PATTERN.fullmatch(line_text)
                or (
                    not typography.is_emphasised(line_index - 1)
                    and _LATE_EXPLAINING_HEADING_PATTERN.fullmatch(line_text)
                )
            )
        )
    )


def is_monitoring_table_head(
    typography: Typography, line_index: int, *, is_in_box: bool = False
) -> bool:
    """Return whether a line is the head of a table of indicators and the like.

    In the box of a policy it stands below a whole sentence.
    """
    flow_line = typography.lines[line_index]
    if flow_line.box is None or not flow_line.box.is_grid:
        return False
    line_text = flow_line.line.text
    monitoring_words = {
        word.casefold() for word in _MONITORING_HEAD_WORD_PATTERN.findall(line_text)
    }
    return (
        len(line_text) <= _MAX_EXPLAINING_HEADING_CHARS
        and typography.is_emphasised(line_index)
        and (
            typography.lines[line_index - 1].line.text.endswith(".")
            if is_in_box
            else typography.lines[line_index - 1].box != flow_line.box
        )
        and len(monitoring_words) > 1
        and _INDICATOR_WORD_PATTERN.search(line_text) is not None
    )
