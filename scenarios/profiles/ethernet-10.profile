# Ethernet at 10 Mbit/s: overhead between frames, 20 bytes: preamble and start of frame 8, gap 12
# (IEEE 802.3). The link counts the frame itself: overhead = { base = "frame", bytes = 4, minimum = 64 }
# How these files are made: docs/profiles.md

name  ethernet-10
bw    10Mbit/s
prob  delay
0     16us
1     16us
