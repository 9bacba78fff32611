"""Settings of the policy base."""

from readingroom.core.settings import CommaSeparatedPaths, RoomSettings, declare_setting


class PolicySettings(RoomSettings):
    """What an operator can choose for the policy base."""

    policy_kb_port: int = declare_setting(
        3003,
        "POLICY_KB_PORT",
        "The port of the policy base when it is served alone; READINGROOM_PORT beats it.",
        ge=0,
        le=65535,
    )
    policy_roots: CommaSeparatedPaths | None = declare_setting(
        None,
        "POLICY_ROOTS",
        "Folders that policies may be ingested from; by default the policy inbox and uploads.",
        is_used_by_sample=False,
    )
