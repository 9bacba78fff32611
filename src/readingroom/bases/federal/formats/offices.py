"""Reads where members are reached: their offices at home, their accounts on social media."""

from collections.abc import Iterator
from typing import Any, ClassVar

from readingroom.bases.federal.formats.parts.files import RawFile, load_yaml
from readingroom.bases.federal.formats.parts.people import office
from readingroom.bases.federal.schema.entries import Entry, Origin, digest

_PLACE = ("address", "suite", "building", "city", "state", "zip", "phone", "fax", "hours")


class DistrictOffices:
    """`legislators-district-offices.yaml`."""

    name: ClassVar[str] = "district-offices/1"
    sources: ClassVar[tuple[str, ...]] = ("staff_directories",)
    complete_for: ClassVar[str | None] = "type"

    def matches(self, file: RawFile) -> bool:
        return file.head.startswith(b"- id:\n") and b"\n  offices:\n" in file.head

    def read(self, file: RawFile, origin: Origin) -> Iterator[Entry]:
        for member in load_yaml(file.data):
            for told in member["offices"]:
                yield _district_office(member["id"]["bioguide"], told, origin)


class SocialMedia:
    """`legislators-social-media.yaml`."""

    name: ClassVar[str] = "social-media/1"
    sources: ClassVar[tuple[str, ...]] = ("staff_directories",)
    complete_for: ClassVar[str | None] = "type"

    def matches(self, file: RawFile) -> bool:
        return b"- id:\n" in file.head and b"\n  social:\n" in file.head

    def read(self, file: RawFile, origin: Origin) -> Iterator[Entry]:
        for member in load_yaml(file.data):
            yield _accounts(member["id"]["bioguide"], member["social"], origin)


def _district_office(bioguide: str, told: dict[str, Any], origin: Origin) -> Entry:
    where = f"{told['city']}, {told['state']}"
    title = f"District office in {where} ({bioguide})"
    place = {key: None if told.get(key) is None else str(told[key]) for key in _PLACE}
    return office(
        told["id"],
        bioguide,
        origin,
        type="district_office",
        title=title,
        names=(f"{where} district office", told.get("building") or ""),
        evidence=f"offices: {told['id']} under bioguide {bioguide}",
        raw_sha256=digest([bioguide, told]),
        latitude=told.get("latitude"),
        longitude=told.get("longitude"),
        **place,
    )


def _accounts(bioguide: str, social: dict[str, Any], origin: Origin) -> Entry:
    accounts = {service: str(name) for service, name in social.items()}
    handles = [name for service, name in accounts.items() if not service.endswith("_id")]
    return office(
        f"{bioguide}-social",
        bioguide,
        origin,
        type="social_media",
        title=f"Accounts on social media ({bioguide})",
        names=tuple(handles),
        evidence=f"social: {', '.join(accounts)} under bioguide {bioguide}",
        raw_sha256=digest([bioguide, social]),
        accounts=accounts,
    )
