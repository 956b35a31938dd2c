# Ethernet at 1 Gbit/s: overhead between frames, 20 bytes: preamble and start of frame 8, gap 12
# (IEEE 802.3). The link counts the frame itself: overhead = { base = "frame", bytes = 4, minimum = 64 }
# How these files are made: docs/profiles.md

name  ethernet-1000
bw    1000Mbit/s
prob  delay
0     160ns
1     160ns
