# 802.11g at 54 Mbit/s among 802.11b stations: protected by CTS-to-self with a short preamble.
# One station that always has packets, no other stations, no losses. In microseconds:
#   DIFS 50 + CTS 107 + SIFS 10 + preamble 20 + MAC, LLC and padding 5.778 + extension 6 + SIFS 10 + ACK 34
#   = 242.778, plus a backoff of 0 to 15 slots of 20, given by the 16 samples of the slope.
# For packets of 1500 bytes; for other lengths the error is less than a symbol, 4.
# How these files are made: docs/profiles.md

name     802.11g-54-protected-short
bw       54Mbit/s
samples  16
prob     delay
0        242.778us
1        562.778us
