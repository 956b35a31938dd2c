# Ethernet at 100 Mbit/s: overhead between frames, 20 bytes: preamble and start of frame 8, gap 12
# (IEEE 802.3). The link counts the frame itself: overhead = { base = "frame", bytes = 4, minimum = 64 }
# How these files are made: docs/profiles.md

name  ethernet-100
bw    100Mbit/s
prob  delay
0     1.6us
1     1.6us
