"""What we wrote ourselves to show the room without its sources: samples, and a GOV.UK emulator."""
