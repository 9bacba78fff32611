"""Settings of the guidance base."""

from readingroom.core.settings import HOST_URL_PATTERN, RoomSettings, declare_setting


class GuidanceSettings(RoomSettings):
    """What an operator can choose for the guidance base."""

    govuk_base_url: str = declare_setting(
        "https://www.gov.uk",
        "GOVUK_BASE_URL",
        "Where the guidance base asks; the one host it ever calls.",
        pattern=HOST_URL_PATTERN,
    )
    govuk_timeout_seconds: float = declare_setting(
        10.0,
        "READINGROOM_GOVUK_TIMEOUT_SECONDS",
        "How long the guidance base waits for GOV.UK in one call, retries included.",
        gt=0,
        le=120,
        allow_inf_nan=False,
    )
    cache_ttl_search_seconds: float = declare_setting(
        30.0,
        "CACHE_TTL_SEARCH_SECONDS",
        "How long a search of the guidance base is fresh; GOV.UK's max-age can shorten it.",
        ge=0,
        le=86_400,
    )
    cache_ttl_content_seconds: float = declare_setting(
        60.0,
        "CACHE_TTL_CONTENT_SECONDS",
        "How long a page of the guidance base is fresh; GOV.UK's max-age can shorten it.",
        ge=0,
        le=86_400,
    )
    cache_stale_seconds: float = declare_setting(
        86_400.0,
        "CACHE_STALE_SECONDS",
        "How long past its time a page may still be served while GOV.UK fails; 0 means never.",
        ge=0,
        le=30 * 86_400,
    )
    guidance_offline_max_days: float = declare_setting(
        30.0,
        "GUIDANCE_OFFLINE_MAX_DAYS",
        "How old the offline copy of the guidance may be to answer while GOV.UK fails; 0: never.",
        ge=0,
        le=3650,
    )
    rate_limit_per_second: int = declare_setting(
        10,
        "RATE_LIMIT_PER_SECOND",
        "Guidance calls a second for one client, and requests a second to GOV.UK, which allows 10: "
        "more is for an upstream of one's own.",
        ge=1,
        le=1000,
    )
