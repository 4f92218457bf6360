//! Conversations in meta commands. Those in which a time to live is told are held where the clock stands.

/// One exchange each, after which the connection is open.
pub(super) const EXCHANGES: &[(&str, &str)] = &[
    ("mn\r\nmn x\r\n", "MN\r\nMN\r\n"),
    // mg
    ("mg a\r\nmg a v\r\nmg a q\r\nmg a k O1\r\nmg a k O1 q\r\n", "EN\r\nEN\r\nEN ka O1\r\n"),
    ("set a 5 0 3\r\nabc\r\nmg a\r\nmg a v\r\nmg a q\r\n", "STORED\r\nHD\r\nVA 3\r\nabc\r\nHD\r\n"),
    ("set a 5 0 3\r\nabc\r\nmg a s v t f h k Oab\r\n", "STORED\r\nVA 3 s3 t-1 f5 h0 ka Oab\r\nabc\r\n"),
    ("set a 0 0 0\r\n\r\nmg a v s\r\n", "STORED\r\nVA 0 s0\r\n\r\n"),
    ("set a 0 0 1\r\nx\r\nmg a h\r\nmg a h\r\n", "STORED\r\nHD h0\r\nHD h1\r\n"),
    ("set a 0 0 1\r\nx\r\nmg a u h\r\nmg a h\r\nmg a h u\r\n", "STORED\r\nHD h0\r\nHD h0\r\nHD h1\r\n"),
    ("set a 0 0 1\r\nx\r\nmg a l\r\nmg a u l\r\n", "STORED\r\nHD l0\r\nHD l0\r\n"),
    ("set a 0 100 1\r\nx\r\nmg a t T300\r\nmg a t\r\n", "STORED\r\nHD t100\r\nHD t300\r\n"),
    ("set a 0 100 1\r\nx\r\nmg a T300 t\r\nmg a T0 t\r\n", "STORED\r\nHD t300\r\nHD t-1\r\n"),
    ("set a 0 100 1\r\nx\r\nmg a T-1 v\r\nmg a v\r\n", "STORED\r\nVA 1\r\nx\r\nEN\r\n"),
    ("set a 0 0 1\r\nx\r\nmg a C1 v s\r\n", "STORED\r\nVA 1 s1\r\nx\r\n"),
    // Many in a row, which are looked up together.
    (
        "ms a 1\r\nx\r\nmg a v k\r\nmg b v k\r\nmg a s q\r\nmg b q\r\nmg a v\r\nmn\r\n",
        "HD\r\nVA 1 ka\r\nx\r\nEN kb\r\nHD s1\r\nVA 1\r\nx\r\nMN\r\n",
    ),
    // Between others, which are not.
    (
        "mg a N30 t\r\nmg a t\r\nget a\r\nmg a v\r\nmd a\r\nmg a v\r\n",
        "HD t30 W\r\nHD t30 Z\r\nVALUE a 0 0\r\n\r\nEND\r\nVA 0 Z\r\n\r\nHD\r\nEN\r\n",
    ),
    // Leases: who asks first is to fetch the value.
    ("mg a N30 v t h s f\r\nmg a v t h\r\n", "VA 0 t30 h0 s0 f0 W\r\n\r\nVA 0 t30 h1 Z\r\n\r\n"),
    ("mg a t N30 k O1\r\nmg a N30 q\r\n", "HD t-1 ka O1 W\r\nHD Z\r\n"),
    ("mg a N0 T60 t\r\nmg b T60 N0 t\r\nmg a t\r\n", "HD t60 W\r\nHD t-1 W\r\nHD t60 Z\r\n"),
    ("mg a N-1\r\nmg a\r\n", "HD W\r\nEN\r\n"),
    ("mg a N30 u h\r\nmg a u h\r\nmg a h\r\nmg a h\r\n", "HD h0 W\r\nHD h0 Z\r\nHD h0 Z\r\nHD h1 Z\r\n"),
    ("mg a N30\r\nms a 1\r\nx\r\nmg a v\r\n", "HD W\r\nHD\r\nVA 1\r\nx\r\n"),
    // What counts as fetched: a touch does, and what makes a new item does not.
    ("ms a 1\r\nx\r\ntouch a 100\r\nmg a u h\r\n", "HD\r\nTOUCHED\r\nHD h1\r\n"),
    ("ms a 1 T10\r\nx\r\ntouch a 100\r\nmg a u h\r\n", "HD\r\nTOUCHED\r\nHD h1\r\n"),
    ("ms a 1\r\nx\r\ntouch a 9\r\nappend a 0 0 1\r\ny\r\nmg a h\r\n", "HD\r\nTOUCHED\r\nSTORED\r\nHD h0\r\n"),
    // Early recache: one of those who ask near the end is to fetch the value.
    (
        "ms a 1 T100\r\nx\r\nmg a R30\r\nmg a R200 t\r\nmg a R200\r\nmg a R30\r\n",
        "HD\r\nHD\r\nHD t100 W\r\nHD Z\r\nHD Z\r\n",
    ),
    (
        "ms a 1 T100\r\nx\r\nmg a T300 R200\r\nmg a R200 T100\r\nmg a R200 T0\r\n",
        "HD\r\nHD\r\nHD\r\nHD W\r\n",
    ),
    ("ms a 1\r\nx\r\nmg a R200 R\r\nmg a R200\r\n", "HD\r\nCLIENT_ERROR duplicate flag\r\nHD\r\n"),
    // Stale values, until somebody fetches a new one.
    (
        "ms a 1 T100\r\nx\r\nmd a I T30\r\nmg a v t\r\nmg a v\r\nget a\r\nmg a\r\nmd a I\r\nmg a\r\n",
        "HD\r\nHD\r\nVA 1 t30 X W\r\nx\r\nVA 1 Z X\r\nx\r\nVALUE a 0 1\r\nx\r\nEND\r\nHD Z X\r\nHD\r\nHD X W\r\n",
    ),
    ("ms a 1\r\nx\r\nmd a I\r\ntouch a 100\r\nmg a t\r\n", "HD\r\nHD\r\nTOUCHED\r\nHD t100 X W\r\n"),
    ("ms a 1\r\n5\r\nmd a I\r\nma a v\r\nmg a\r\n", "HD\r\nHD\r\nVA 1\r\n6\r\nHD X W\r\n"),
    ("ms a 1\r\n9\r\nmd a I\r\nma a v\r\nmg a\r\n", "HD\r\nHD\r\nVA 2\r\n10\r\nHD\r\n"),
    ("ms a 1\r\nx\r\nmd a I\r\nappend a 0 0 1\r\ny\r\nmg a v\r\n", "HD\r\nHD\r\nSTORED\r\nVA 2\r\nxy\r\n"),
    // ms
    ("ms a 2\r\nhi\r\nmg a v f t\r\n", "HD\r\nVA 2 f0 t-1\r\nhi\r\n"),
    ("ms a 2 F5 T100 k s O9\r\nhi\r\nmg a v f t\r\n", "HD ka s2 O9\r\nVA 2 f5 t100\r\nhi\r\n"),
    ("ms a 2 q\r\nhi\r\nms a 2 q ME\r\nho\r\nmg a v\r\n", "NS\r\nVA 2\r\nhi\r\n"),
    ("ms a 0\r\n\r\nmg a v\r\n", "HD\r\nVA 0\r\n\r\n"),
    ("ms a 2 T-1\r\nhi\r\nmg a\r\n", "HD\r\nEN\r\n"),
    ("ms a 2 ME\r\nhi\r\nms a 2 ME k c\r\nho\r\nmg a v\r\n", "HD\r\nNS ka c0\r\nVA 2\r\nhi\r\n"),
    (
        "ms a 2 MR k\r\nhi\r\nms a 2 MS\r\nhi\r\nms a 2 MR\r\nho\r\nmg a v\r\n",
        "NS ka\r\nHD\r\nHD\r\nVA 2\r\nho\r\n",
    ),
    (
        "ms a 2 MA\r\nhi\r\nms a 2 F7 T100\r\nhi\r\nms a 1 MA s F3 T5\r\n!\r\nms a 3 MP s\r\noh \r\nmg a v f t\r\n",
        "NS\r\nHD\r\nHD s3\r\nHD s6\r\nVA 6 f7 t100\r\noh hi!\r\n",
    ),
    (
        "ms a 2 MA N50 T9 F3 s\r\nhi\r\nms a 2 MP N9 F5 s\r\noh\r\nmg a v f t\r\n",
        "HD s2\r\nHD s4\r\nVA 4 f3 t50\r\nohhi\r\n",
    ),
    ("ms a 2 C1 k O1\r\nhi\r\nms a 2 C1 MR q\r\nhi\r\n", "NF ka O1\r\nNF\r\n"),
    (
        "ms a 2\r\nhi\r\nms a 2 C1 c\r\nho\r\nms a 2 C1 MA\r\nho\r\nms a 2 C0\r\nho\r\n",
        "HD\r\nEX c0\r\nEX\r\nEX\r\n",
    ),
    ("ms a 2 C1 ME\r\nhi\r\nms b 2 C1 MA\r\nhi\r\n", "HD\r\nNS\r\n"),
    ("ms a 2\r\nhi\r\nms a 2 C0 MA\r\nho\r\nmg a v\r\n", "HD\r\nHD\r\nVA 4\r\nhiho\r\n"),
    // The data of what is refused is no command.
    ("ms a 6 z\r\nquit\r\n\r\nmn\r\n", "CLIENT_ERROR invalid flag\r\nMN\r\n"),
    (
        "ms a 2\r\nhix\r\nmn\r\n",
        "CLIENT_ERROR bad data chunk\r\nCLIENT_ERROR bad command line format\r\nMN\r\n",
    ),
    ("ms a 2 q\r\nhixymn\r\n", "CLIENT_ERROR bad data chunk\r\nMN\r\n"),
    // md
    (
        "md a\r\nmd a q k O1\r\nms a 1\r\nx\r\nmd a k O1\r\nmg a\r\n",
        "NF\r\nNF ka O1\r\nHD\r\nHD ka O1\r\nEN\r\n",
    ),
    ("ms a 1\r\nx\r\nmd a q\r\nmg a\r\n", "HD\r\nEN\r\n"),
    ("ms a 1\r\nx\r\nmd a C1 k\r\nmd a C1 I\r\nmg a\r\n", "HD\r\nEX ka\r\nEX\r\nHD\r\n"),
    ("ms a 1\r\nx\r\nmd a T5\r\nmg a\r\n", "HD\r\nHD\r\nEN\r\n"),
    ("ms a 1 F5 T100\r\nx\r\nmd a x\r\nmg a v f t h\r\n", "HD\r\nHD\r\nVA 0 f0 t-1 h0\r\n\r\n"),
    (
        "ms a 1\r\nx\r\nmd a x I T50 F9\r\nmg a v f t\r\nmg a\r\n",
        "HD\r\nHD\r\nVA 0 f9 t50 X W\r\n\r\nHD Z X\r\n",
    ),
    // ma
    (
        "ma a\r\nma a q k O1\r\nma a N0 J13 v t\r\nma a v\r\n",
        "NF\r\nNF ka O1\r\nVA 2 t-1\r\n13\r\nVA 2\r\n14\r\n",
    ),
    (
        "ma a N30\r\nma a D5 v t k O3\r\nma a MD v\r\nma a M- D100 v\r\nma a M+ q\r\nmg a v\r\n",
        "HD\r\nVA 1 t30 ka O3\r\n5\r\nVA 1\r\n4\r\nVA 1\r\n0\r\nVA 1\r\n1\r\n",
    ),
    ("ma a t N30 v\r\nma b N30 T60 t\r\nma c T60 N30 t\r\n", "VA 1 t-1\r\n0\r\nHD t60\r\nHD t30\r\n"),
    ("ma a N0 q\r\nma a T100 t\r\nma a t T50\r\nmg a t v\r\n", "HD t100\r\nHD t100\r\nVA 1 t50\r\n2\r\n"),
    ("ms a 2 F5\r\n10\r\nma a MD v\r\nmg a v s f\r\n", "HD\r\nVA 1\r\n9\r\nVA 2 s2 f5\r\n9 \r\n"),
    (
        "ms a 1\r\nx\r\nma a\r\nma a q\r\nma a C1\r\nms a 0\r\n\r\nma a C1\r\n",
        "HD\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n\
         CLIENT_ERROR cannot increment or decrement non-numeric value\r\nEX\r\nHD\r\n\
         CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
    ),
    ("ms a 1\r\n5\r\nma a C1 k v\r\nma a C0 v\r\n", "HD\r\nEX ka\r\nVA 1\r\n6\r\n"),
    ("set a 0 0 20\r\n18446744073709551615\r\nma a v\r\n", "STORED\r\nVA 1\r\n0\r\n"),
    // Base64: any bytes are a key.
    (
        "ms IA== 2 b k\r\nhi\r\nmg IA== b v k\r\nmg IA== v k b\r\nmd IA== b k\r\nmg IA== b k O1\r\n",
        "HD kIA== b\r\nVA 2 kIA== b\r\nhi\r\nVA 2 kIA== b\r\nhi\r\nHD kIA== b\r\nEN kIA== b O1\r\n",
    ),
    (
        "ms YQ== 1 b\r\nx\r\nget a\r\nmg a s\r\nma DQo= b N0 J5 v\r\n",
        "HD\r\nVALUE a 0 1\r\nx\r\nEND\r\nHD s1\r\nVA 1\r\n5\r\n",
    ),
    ("mg YR== b k\r\nmg YQ!== b k\r\n", "EN kYQ== b\r\nEN kYQ== b\r\n"),
    // me
    ("me a\r\nme YQ== b\r\n", "EN\r\nEN\r\n"),
];

/// Several, with numbers.
pub(super) const EXCHANGES_WITH_CAS: &[&[(&str, &str)]] = &[
    &[
        ("ms a 2 c\r\nhi\r\nmg a c\r\n", "HD c$1\r\nHD c$1\r\n"),
        ("ms a 2 C$1 c\r\nho\r\nms a 2 C$1 c\r\nha\r\n", "HD c$2\r\nEX c0\r\n"),
        ("mg a v C$2 c s\r\nmg a v C$1 c\r\n", "HD c$2 s2\r\nVA 2 c$2\r\nho\r\n"),
        ("ms a 1 MA C$1\r\n!\r\nms a 1 MA C$2 c\r\n!\r\nmg a v\r\n", "EX\r\nHD c$3\r\nVA 3\r\nho!\r\n"),
        ("md a C$2\r\nmd a C$3\r\nmg a\r\n", "EX\r\nHD\r\nEN\r\n"),
    ],
    // A late value is welcome as a stale one.
    &[
        ("ms a 1 c T100\r\na\r\n", "HD c$1\r\n"),
        ("ms a 1 c T200\r\nb\r\n", "HD c$2\r\n"),
        ("ms a 1 C$1 I c T5 F3\r\nc\r\nmg a v t f c\r\n", "HD c$3\r\nVA 1 t200 f3 c$3 X W\r\nc\r\n"),
        ("ms a 1 C$2 I MR c\r\nd\r\nmg a v\r\n", "HD c$4\r\nVA 1 Z X\r\nd\r\n"),
        ("ms a 1 C$4 I c\r\ne\r\nmg a v\r\n", "HD c$5\r\nVA 1\r\ne\r\n"),
        ("ms a 1 C$1 I MA\r\nf\r\nms a 1 C18446744073709551615 I\r\nf\r\n", "EX\r\nEX\r\n"),
    ],
    // Marking changes the number; emptying does not.
    &[
        ("ms a 1 c\r\nx\r\nmd a I\r\nmg a c\r\n", "HD c$1\r\nHD\r\nHD c$2 X W\r\n"),
        ("md a C$2 x\r\nmg a c v\r\n", "HD\r\nVA 0 c$2\r\n\r\n"),
        ("ma b N0 c\r\n", "HD c$3\r\n"),
        ("ma b c\r\n", "HD c$4\r\n"),
        ("ma b C$3\r\nma b C$4 c v\r\n", "EX\r\nVA 1 c$5\r\n2\r\n"),
        ("mg d N0 c\r\nmg d c T50\r\nmg d R100 c\r\n", "HD c$6 W\r\nHD c$6 Z\r\nHD c$6 Z\r\n"),
    ],
    // The client's own numbers.
    &[
        ("ms a 1 E77 c\r\nx\r\nmg a c\r\ngets a\r\n", "HD c77\r\nHD c77\r\nVALUE a 0 1 77\r\nx\r\nEND\r\n"),
        (
            "ms a 1 C77 E80 c\r\ny\r\nms a 1 C78 I E81 c\r\nz\r\nmg a v\r\n",
            "HD c80\r\nHD c81\r\nVA 1 X W\r\nz\r\n",
        ),
        ("md a I E90\r\nmg a c\r\nmd a x E91\r\nmg a c\r\n", "HD\r\nHD c90 X W\r\nHD\r\nHD c91\r\n"),
        (
            "mg b N0 E5 c\r\nmg b c\r\nma n N0 E6 c\r\nma n E7 c\r\nma n C7 c\r\n",
            "HD c5 W\r\nHD c5 Z\r\nHD c6\r\nHD c7\r\nHD c$1\r\n",
        ),
        ("ms a 1 MA E99 c\r\n!\r\ncas a 0 0 1 99\r\nq\r\n", "HD c99\r\nSTORED\r\n"),
    ],
];

/// After these the connection is closed.
pub(super) const CLOSING: &[(&str, &str)] = &[
    ("ms a S2\r\nmd a\r\nmn\r\n", "CLIENT_ERROR bad command line format\r\n"),
    ("mn\r\nms\r\nmn\r\n", "MN\r\nCLIENT_ERROR bad command line format\r\n"),
];
