"""The sample's policies: written as PDFs and imported like anybody's own."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from readingroom.bases.policy.admin.import_list import prepare_import
from readingroom.bases.policy.commands import ImportPolicies
from readingroom.core.progress import ReportProgressSync
from readingroom.core.settings import RoomSettings
from readingroom.demo import corpus
from readingroom.protocol.command import RunCommand
from readingroom.protocol.sample import BaseSampleLoader, SampleStep


class PolicySampleLoader(BaseSampleLoader):
    def list_steps(
        self, settings: RoomSettings, corpus_folder: Path, run_command: RunCommand
    ) -> Iterator[SampleStep]:
        for policy_entry in corpus.load_sample_policies():
            yield SampleStep(
                f"policy {policy_entry['source']}",
                partial(_import_policy, settings, policy_entry, corpus_folder, run_command),
            )


def _import_policy(
    settings: RoomSettings,
    policy_entry: dict[str, Any],
    corpus_folder: Path,
    run_command: RunCommand,
    report_progress: ReportProgressSync,
) -> None:
    imported_policies, _ = prepare_import(
        corpus.write_policy(policy_entry, corpus_folder), settings
    )
    run_command(ImportPolicies(policies=imported_policies), settings)


SAMPLE = PolicySampleLoader()
