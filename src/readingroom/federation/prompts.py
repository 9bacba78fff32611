"""Prompts for common jobs: each tells a model which tools to use, and in which order."""

from collections.abc import Mapping

from readingroom.protocol.resources import Prompt, PromptArgument


def _render_application_review(prompt_arguments: Mapping[str, str]) -> str:
    topic_text = (
        prompt_arguments.get("topic")
        or "each topic the policies raise (transport, design, heritage, …)"
    )
    return (
        f"Review planning application {prompt_arguments['application_ref']} against the policy "
        f"that applied to it, on {topic_text}.\n\n"
        "1. application_overview tells what documents there are, what was skipped, and the day the "
        "application was validated.\n"
        "2. For each topic call assess_against_policy: it puts the application's own words beside "
        "the policy in force on that day.\n"
        "3. Read whole sections with get_policy_section and documents with get_document_text "
        "before you conclude, and check every quotation with verify_policy_quote.\n\n"
        "Say for each policy requirement what the application says, with both citations; say "
        "plainly where it says nothing. Do not use policy that was not in force on the day."
    )


def _render_policy_changes(prompt_arguments: Mapping[str, str]) -> str:
    return (
        f"What changed in {prompt_arguments['source']} between {prompt_arguments['from_date']} and "
        f"{prompt_arguments['to_date']}?\n\n"
        "Call compare_policy_revisions with these days. Group the changes by what they mean for "
        "an applicant; quote the words that came and went, each with its section and page. Say "
        "which revision was in force on each day, and from when the change applies."
    )


def _render_federal_brief(prompt_arguments: Mapping[str, str]) -> str:
    return (
        f"Write a one-page brief on {prompt_arguments['bill_id']}.\n\n"
        "Begin with get_bill_dossier. Tell what the bill does (from its summary and text, not from "
        "its title), who sponsors it, where it stands, its cost estimate, the administration's "
        "position, the votes and the amendments that mattered. Follow a `more_url` or fetch an id "
        "when a section is cut short. Cite every statement, and say up to which date the records "
        "here are loaded."
    )


def _render_charity_duty(prompt_arguments: Mapping[str, str]) -> str:
    return (
        f"A charity asks: {prompt_arguments['question']}\n\n"
        "Find the Charity Commission's guidance with search_guidance and read the pages with "
        "get_content_by_path before you answer. Separate what the law requires (must) from what "
        "the Commission recommends (should), as the guidance does. Quote the words you rely on "
        "with the page's title, address and date, say if a page was withdrawn, and repeat its "
        "attribution and disclaimer: this is guidance, not legal advice."
    )


PROMPTS = (
    Prompt(
        "review_application",
        "Review an application against policy",
        "Go through a planning application beside the policy in force when it was validated.",
        (
            PromptArgument("application_ref", "The application, such as 25/01178/REM."),
            PromptArgument(
                "topic", "One topic, such as cycle parking; all when left out.", required=False
            ),
        ),
        _render_application_review,
    ),
    Prompt(
        "what_changed_in_policy",
        "What changed in a policy",
        "Compare a policy as it was in force on two days, section by section.",
        (
            PromptArgument("source", "The policy, such as NPPF."),
            PromptArgument("from_date", "The earlier day, YYYY-MM-DD."),
            PromptArgument("to_date", "The later day, YYYY-MM-DD."),
        ),
        _render_policy_changes,
    ),
    Prompt(
        "brief_on_bill",
        "Brief on a bill",
        "Write a cited one-page brief on a bill of Congress.",
        (PromptArgument("bill_id", "The bill, such as hr:119:1."),),
        _render_federal_brief,
    ),
    Prompt(
        "check_charity_duty",
        "Check a charity's duty",
        "Answer what a charity must and should do, from the Charity Commission's own guidance.",
        (PromptArgument("question", "What the charity wants to know."),),
        _render_charity_duty,
    ),
)
