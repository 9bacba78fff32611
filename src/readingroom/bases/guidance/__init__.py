"""The guidance base: Charity Commission guidance, read from GOV.UK as it stands there."""
