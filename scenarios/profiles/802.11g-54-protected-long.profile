# 802.11g at 54 Mbit/s among stations of 802.11b: protected by a CTS to itself with a long preamble.
# One station that always has packets, nobody else, no losses. In microseconds:
#   DIFS 50 + CTS 203 + SIFS 10 + preamble 20 + MAC, LLC and padding 5.778 + extension 6 + SIFS 10 + ACK 34
#   = 338.778, and a backoff of 0 to 15 slots of 20, which is what 16 samples of the slope are.
# For packets of 1500 bytes; for other lengths it is off by less than a symbol, 4.
# How these files come about: docs/profiles.md

name     802.11g-54-protected-long
bw       54Mbit/s
samples  16
prob     delay
0        338.778us
1        658.778us
