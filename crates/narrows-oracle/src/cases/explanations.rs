//! Why the two differ by as much as they do.

/// A sentence for a case; empty where nothing differs.
pub(super) fn of(case: &str) -> &'static str {
    match case {
        "netem-delay-own" | "netem-normal-own" => {
            "Without a rate, narrows' own link does what the single queue does."
        }
        "netem-loss-correlated" => {
            "The kernel's formula loses far less than it is told; exact mode has that formula."
        }
        "netem-corrupt" => {
            "What has a flipped bit is dropped by the receiver's stack. The kernel may flip one of the sender's link address, \
             which nobody notices: 6 bytes of a frame of 500."
        }
        "htb-shares" => {
            "At 15 Mbit/s a byte takes 533⅓ ns. The kernel cuts each packet's time to whole nanoseconds, and so gains about \
             half a nanosecond a packet on narrows, which carries what is left over: 300 ns after 640 packets. There the one \
             class's tokens suffice just before the other's in the kernel, and just after in narrows. What follows is another \
             order with the same shares, and with frames of any length other packets that are lost."
        }
        "htb-quanta" | "htb-priorities" => {
            "Tokens of one class and of another suffice at the same instant, and the two take them in different order. What \
             follows is another order with the same shares, and with frames of any length other packets that are lost."
        }
        "default-pfifo" | "default-class" | "default-codel" | "default-pie" | "change-codel" => {
            "At 100 Mbit/s the kernel cuts each packet's time to whole nanoseconds: over a queue of 1000 packets it gains some \
             nanoseconds on narrows, which carries what is left over."
        }
        "hfsc-guarantee" => {
            "The kernel cuts the work at which the curves of two backlogged periods cross to whole bytes, so that a class loses up \
             to a byte each time it becomes active, until a curve starts anew."
        }
        name if name.starts_with("hfsc-") => {
            "The kernel's HFSC has ticks of 64 ns: the start of a curve and the times on it are cut to whole ticks, while narrows \
             has nanoseconds and rounds up."
        }
        "policer" => {
            "For what arrives the kernel counts IP packets, whose link header is gone by then, and so does narrows."
        }
        "policer-lengths" => {
            "Where a script does not say what becomes of the rest, tc says that it is to be classified again. It comes to the \
             same policer, which has no more tokens for it than before, and after 16 times the kernel drops it."
        }
        "policer-peak" => "Ours was wrong: what was to be classified again passed.",
        "policer-behind-tbf" => {
            "Ours was wrong: where a shaper of the same way counts frames, the policer did so, too, 14 bytes more for each \
             packet."
        }
        "red-average" => {
            "Near the threshold the two averages, of which the kernel's has a fraction of few bits, are on different sides of \
             it for a packet now and then: a neighbour is lost in its place, but not more."
        }
        "sfq-red" | "red-thresholds" | "choke" | "choke-alone" | "choke-ecn" | "sfb" | "sfb-ecn" => {
            "Both draw."
        }
        "choke-average" => {
            "Both draw. The kernel goes on with the whole part of its average of packets, so that it is above what waits by its \
             mean fraction, and the delay 0.25 ms shorter than with the same thresholds. Here ours are 0.36 packets lower, in \
             bytes."
        }
        "sfb-penalty" => {
            "The kernel fills the bucket of penalized flows only when it is empty, by whole packets for whole jiffies: 4 packets \
             each 10 ms here. At less than a packet in a jiffy it is never filled while packets keep coming; narrows' bucket is."
        }
        "red" | "red-ecn" => {
            "Both draw. tc's weight, 1/16, follows from burst, min and avpkt; narrows had its own before."
        }
        "gred" => {
            "The kernel's is a RED for each drop precedence, told apart by a mark, and none of them gentle: with one it is what \
             narrows calls `red`. Both draw."
        }
        "codel" | "codel-equal" | "codel-ecn" | "fq_codel" | "fq_codel-ecn" => {
            "Theirs: the kernel works 1/√count out by one Newton step on 16 bits at each drop, from 1 on: 0.5 for the second \
             where it is 0.707, 0.5625 for the third where it is 0.577. So its second drop comes 20.7 ms early at an interval \
             of 100 ms, and the schedule stays ahead by about that. RFC 8289 has the root, and so has narrows. Times are in \
             units of 1024 ns there."
        }
        "cake-blue" => {
            "BLUE draws. Its limit counts the memory of the kernel's buffers, 2304 bytes for a frame of 1000."
        }
        "cake-tins" | "cake-precedence" | "cake-diffserv8" => {
            "The kernel's limit counts the memory of its buffers, 2304 bytes for a frame of 1000, narrows' the bytes of packets. \
             With the usual 4 MiB the kernel's is reached here, so both have more."
        }
        "pie-bytemode" => {
            "As for pie. The probability of a frame of 200 bytes is 200/1514 of the whole in the kernel, 186/1500 in narrows, \
             which counts IP packets."
        }
        "pie-rate" => {
            "As for pie. The kernel's rate has a fraction of 8 bits in bytes per 64 ns: at 10 Mbit/s it is 20/256 where 20.5/256 \
             are measured, so that the delay counts 2 % more."
        }
        "pie" | "pie-ecn" | "fq_pie" => {
            "Both draw. Theirs: tupdate is rounded up to jiffies, and the timer comes one jiffy later: 20 ms are 30 at 100 Hz, \
             which is what narrows is told here, with what the kernel has beyond the RFC's base. The kernel goes by how long the \
             packet had waited that went last, narrows by how long the next one has."
        }
        "dualpi2-step" => {
            "RFC 9332 marks when its sum of probabilities is above 1, and so does narrows: the first packet beyond the step \
             makes it 1, and goes without."
        }
        "dualpi2-protection" => {
            "The kernel lets L begin with 12.1 kB in advance, eight packets of the MTU, narrows with none. At nine to one this \
             puts each flow a tenth of it ahead or behind, 1.2 kB; and a packet of each is the least that they can differ by."
        }
        "dualpi2-coupled" => {
            "The kernel draws, narrows has the sums of RFC 9332. The kernel keeps the credit of the weights while one queue is \
             empty, so that one packet of L in twelve waits for one of C here; in narrows the count begins anew, and L goes \
             first."
        }
        "dualpi2-drops" | "dualpi2-marks" | "dualpi2-gains" | "dualpi2-overload" => {
            "The kernel draws, narrows has the sums of RFC 9332. Its updates are at another phase."
        }
        "qfq" | "qfq-tc" => {
            "Both approximate the same fluid system, the kernel by QFQ+, which gives an aggregate of classes the link for \
             its whole budget. Each may be off by a few packets (B-WFI ≤ 3·φ·σ + 2·φ·L); together they are by 3."
        }
        "drr-tc" | "ets-tc" => {
            "A documented choice: quanta count frames in the kernel and IP packets in narrows, so that turns end one packet \
             sooner or later. The shares are the same, as all frames have one length."
        }
        "ets" => {
            "As for drr: quanta of 3000 and 1500 bytes of frames are told to narrows as 2958 and 1479 bytes of IP packets."
        }
        "fq-maxrate" | "fq-low-rate" => {
            "A packet leaves when the kernel's timer fires. Its slack, 10 us by default, is 1 ns here; narrows has none."
        }
        "drr" | "sfq-headdrop" => {
            "A quantum of 1500 bytes of frames is told to narrows as 1479 bytes of IP packets, as it counts these."
        }
        "sfq" => {
            "As for drr. Of flows of one length the kernel drops from the one that has got there last, narrows from the one \
             with the least number. Two faults of ours were found here: a full queue dropped the head of the longest flow, \
             where the kernel and McKenney drop its tail, and a flow that had sent all it had kept its turn."
        }
        "fq_codel-limit" => {
            "As for drr. An overload costs the longest flow half its packets, up to 64, in both."
        }
        "fq_codel-lengths" => {
            "A documented choice: narrows' quanta count IP packets, the kernel's whole frames. A flow of frames of 100 bytes \
             has 15 % more of the link against one of 1514 than in the kernel; no more than packets' worth here, as it sends \
             less than its share."
        }
        _ => "",
    }
}
