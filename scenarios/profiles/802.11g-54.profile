# 802.11g at 54 Mbit/s among 802.11g stations only: short slots.
# One station that always has packets, no other stations, no losses. In microseconds:
#   DIFS 28 + preamble 20 + MAC, LLC and padding 5.778 + extension 6 + SIFS 10 + ACK 34
#   = 103.778, plus a backoff of 0 to 15 slots of 9, given by the 16 samples of the slope.
# For packets of 1500 bytes; for other lengths the error is less than a symbol, 4.
# How these files are made: docs/profiles.md

name     802.11g-54
bw       54Mbit/s
samples  16
prob     delay
0        103.778us
1        247.778us
