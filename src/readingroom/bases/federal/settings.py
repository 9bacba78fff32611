"""Settings of the federal base."""

from readingroom.core.settings import HOST_URL_PATTERN, RoomSettings, declare_setting


class FederalSettings(RoomSettings):
    """What an operator can choose for the federal base."""

    govinfo_url: str = declare_setting(
        "https://www.govinfo.gov",
        "READINGROOM_GOVINFO_URL",
        "Where `federal sync` finds the bulk data of the Government Publishing Office.",
        pattern=HOST_URL_PATTERN,
    )
    federal_register_url: str = declare_setting(
        "https://www.federalregister.gov",
        "READINGROOM_FEDERAL_REGISTER_URL",
        "Where `federal sync` asks for the documents of the Federal Register.",
        pattern=HOST_URL_PATTERN,
    )
    legislators_url: str = declare_setting(
        "https://unitedstates.github.io/congress-legislators",
        "READINGROOM_LEGISLATORS_URL",
        "Where `federal sync` finds the files of congress-legislators.",
        pattern=r"^https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._-]+)*$",
    )
    house_clerk_url: str = declare_setting(
        "https://clerk.house.gov",
        "READINGROOM_HOUSE_CLERK_URL",
        "Where `federal sync` finds the roll call votes of the House.",
        pattern=HOST_URL_PATTERN,
    )
    senate_url: str = declare_setting(
        "https://www.senate.gov",
        "READINGROOM_SENATE_URL",
        "Where `federal sync` finds the roll call votes of the Senate.",
        pattern=HOST_URL_PATTERN,
    )
    sync_pause_seconds: float = declare_setting(
        0.5,
        "READINGROOM_SYNC_PAUSE_SECONDS",
        "How long `federal sync` waits between two requests.",
        ge=0,
        le=60,
        allow_inf_nan=False,
    )
