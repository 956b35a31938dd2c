//! Tables with dates and times of day in other forms, and in two columns.

use narrows_scenario::trace::{Columns, Trace};

use crate::{mbit, ms, rates};

fn columns(text: &str, columns: &str) -> Result<Trace, String> {
    let columns: Columns = columns.parse().expect("these are columns");
    Trace::read_columns("x.csv", text.as_bytes(), &columns).map_err(|error| error.to_string())
}

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

#[test]
fn dates_have_the_order_of_their_column() {
    for (text, says) in [
        ("02/27/19 23:00,5\n02/28/19 23:00,6\n03/01/19 00:00,7\n", "`02/27/19 23:00` have the month first"),
        ("27.2.2019 23:00:00,5\n28.2.2019 23:00:00,6\n1.3.2019 00:00:00,7\n", "have the day first"),
        // Rows of which others are not read say nothing.
        ("11/12/19 23:00,5\n12/12/19 23:00,6\n13/12/19 00:00,7\n", "`13/12/19 00:00` have the day first"),
        ("Feb 27 23:00:00,5\nFeb 28 23:00:00,6\nMar 1 00:00:00,7\n", "dates have no year"),
        (
            "Tue 27 Feb 23:00:00 CET 2018,5\nWed 28 Feb 23:00:00 CET 2018,6\nThu 1 Mar 00:00:00 CET 2018,7\n",
            "",
        ),
        (
            "Tue Feb 27 23:00:00 CET 2018,5\nWed Feb 28 23:00:00 CET 2018,6\nThu Mar  1 01:00:00 CEST 2018,7\n",
            "",
        ),
    ] {
        let trace = columns(text, "time=1,rate=2,unit=mbit").unwrap();
        assert_eq!(
            rates(&trace),
            [(0, mbit(5)), (24 * HOUR, mbit(6)), (25 * HOUR, mbit(7))],
            "{text}: {trace:?}"
        );
        assert_eq!(trace.length(), ms(26 * HOUR), "{text}");
        let said = trace.remarks().join("\n");
        assert!(said.contains(says) && (!says.is_empty() || said.is_empty()), "{said}");
    }
    // Rows that do not count say nothing of the order.
    let text = "t,of,d\n31/12/2019,b,1\n01/31/2020,a,20\n02/01/2020,a,30\n";
    assert_eq!(columns(text, "time=t,delay=d,where=of:a").unwrap().length(), ms(48 * HOUR));
    let error = columns(text, "time=t,delay=d").unwrap_err();
    assert!(error.contains("x.csv:3:") && error.contains("found `01/31/2020`, expected a date"), "{error}");
}

#[test]
fn a_date_and_a_time_of_day_may_be_in_two_columns() {
    for (text, by) in [
        ("Date,Time,r\n02/28/19,23:30,5\n03/01/19,0:00,6\n", "time=Date+Time,rate=r,unit=mbit"),
        ("Time,r,Date\n23:30,5,2019-02-28\n00:00,6,2019-03-01\n", "time=Time+Date,rate=r,unit=mbit"),
        ("28.02.2019;23:30:00;5\n1.3.2019;00:00:00;6\n", "time=1+2,time-unit=date,rate=3,unit=mbit"),
        ("2019-02-28 23:30:00 5\n2019-03-01 00:00:00 6\n", "time=1+2,rate=3,unit=mbit"),
        ("a+b,c,r\n2019-02-28,11:30 PM,5\n2019-03-01,12:00 AM,6\n", "time=a+b+c,rate=r,unit=mbit"),
        // A single column of that name.
        ("Date+Time,r\n02/28/19 23:30,5\n03/01/19 00:00,6\n", "time=Date+Time,rate=r,unit=mbit"),
    ] {
        let trace = columns(text, by).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(rates(&trace), [(0, mbit(5)), (30 * MINUTE, mbit(6))], "{text}");
    }
    for (text, by, words) in [
        (
            "Date,Time,r\n02/28/19,23:30,5\n",
            "time=Date+Tim,rate=r,unit=mbit",
            ["no column `Date+Tim`", "Date+Time"],
        ),
        (
            "d,t,r\n02/28/19,23,5\n",
            "time=d+t,rate=r,unit=mbit",
            ["x.csv:2:10", "found `23`, expected a time of day"],
        ),
        (
            "d,t,r\n2019-01-01 10:00,10:00,5\n",
            "time=d+t,rate=r,unit=mbit",
            ["x.csv:2:1", "expected a date without a time of day"],
        ),
        ("d,t,r\n02/28/19,23:30,5\n", "time=d+t,time-unit=s,rate=r,unit=mbit", ["have no unit", "leave out"]),
        (
            "d,t,r\n02/28/19,23:30,5\n02/28/19,23:29,5\n",
            "time=d+t,rate=r,unit=mbit",
            ["x.csv:3:1", "`02/28/19` `23:29` goes back"],
        ),
    ] {
        let error = columns(text, by).expect_err(text);
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}
