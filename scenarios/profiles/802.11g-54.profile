# 802.11g at 54 Mbit/s among its own kind: short slots.
# One station that always has packets, nobody else, no losses. In microseconds:
#   DIFS 28 + preamble 20 + MAC, LLC and padding 5.778 + extension 6 + SIFS 10 + ACK 34
#   = 103.778, and a backoff of 0 to 15 slots of 9, which is what 16 samples of the slope are.
# For packets of 1500 bytes; for other lengths it is off by less than a symbol, 4.
# How these files come about: docs/profiles.md

name     802.11g-54
bw       54Mbit/s
samples  16
prob     delay
0        103.778us
1        247.778us
