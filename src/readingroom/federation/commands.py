"""The desk's commands: searches from the shell, run here or in the server that owns the bases."""

from typing import TYPE_CHECKING, ClassVar

from readingroom.core.ids import make_request_id
from readingroom.core.progress import ReportProgress
from readingroom.federation import DESK_NAME
from readingroom.federation.evaluation import Evaluation, EvaluationQuestion, evaluate_searches
from readingroom.federation.models import DeskAnswer, DeskSearch
from readingroom.protocol.command import Command
from readingroom.protocol.tool import ToolContext

if TYPE_CHECKING:  # a server of one base has no desk, and does not import every base for it
    from readingroom.federation.service import FederationService


class Ask(Command):
    """A search over every base."""

    name: ClassVar[str] = "desk.ask"
    reads_only: ClassVar[bool] = True
    base: ClassVar[str] = DESK_NAME
    search: DeskSearch

    async def run(
        self, federation_service: "FederationService", report_progress: ReportProgress
    ) -> DeskAnswer:
        return await federation_service.search(
            self.search, ToolContext(make_request_id(), "operator", report_progress)
        )


class Evaluate(Command):
    """Searches over every base, or over some, that are compared with the right answers."""

    name: ClassVar[str] = "desk.eval"
    reads_only: ClassVar[bool] = True
    base: ClassVar[str] = DESK_NAME
    questions: list[EvaluationQuestion]
    source: list[str] | None = None

    async def run(
        self, federation_service: "FederationService", report_progress: ReportProgress
    ) -> Evaluation:
        tool_context = ToolContext(make_request_id(), "operator", report_progress)
        return await evaluate_searches(
            federation_service, self.questions, self.source, tool_context
        )


COMMANDS = (Ask, Evaluate)
