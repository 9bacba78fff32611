"""Sample content written for Reading Room, and an emulator of GOV.UK, to try it without sources."""
