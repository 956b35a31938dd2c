//! Tables with dates and times of day in other forms, and in two columns.

use narrows_scenario::trace::{Columns, Trace};

use crate::{mbit, ms, rates, read, refused};

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
fn a_header_may_name_a_date_and_a_time_of_day() {
    for (text, says) in [
        (
            "Date,Time,rate_mbit\n02/28/19,23:30,5\n03/01/19,00:00,6\n",
            "time `Date` in dates, and `Time` in times of day",
        ),
        (
            "time;date;rate_mbit\n23:30:00;28.02.2019;5\n00:00:00;01.03.2019;6\n",
            "time `date` in dates, and `time`",
        ),
        // The date has the better name.
        (
            "date,test time,rate_mbit\n2019-02-28,23:30,5\n2019-03-01,00:00,6\n",
            "and `test time` in times of day",
        ),
    ] {
        let trace = read("x.csv", text);
        assert_eq!(rates(&trace), [(0, mbit(5)), (30 * MINUTE, mbit(6))], "{text}");
        assert!(trace.remarks()[0].contains(says), "{trace:?}");
    }
    for (text, words) in [
        // Which of two dates, or of two instants?
        (
            "date,time,rate_mbit\n2019-02-28,2019-02-28,5\n",
            ["2 columns may be the time: `date` or `time`"; 2],
        ),
        (
            "date,time,rate_mbit\n2019-02-28 10:00,10:00,5\n",
            ["2 columns may be the time: `date` or `time`"; 2],
        ),
        (
            "Date,Time,throughput\n02/28/19,23:30,5\n03/01/19,00:00,6\n",
            ["does not say the unit of the rate", "`--columns time=Date+Time,rate=throughput,unit=mbit`"],
        ),
        (
            "28.02.2019,23:30,5\n01.03.2019,00:00,6\n",
            ["3 columns separated by commas", "`--columns time=1+2,rate=3,unit=mbit`"],
        ),
        ("Jun 30 14:37:36 ,5\nJun 30 14:41:45 ,6\n", ["2 columns", "`--columns time=1,rate=2,unit=mbit`"]),
        (
            "Date,Time,host,rtt_ms\n02/28/19,23:30,a,5\n02/28/19,23:30,b,6\n02/28/19,23:31,a,5\n02/28/19,23:31,b,7\n",
            ["several series", "time=Date+Time,time-unit=date,rtt=rtt_ms,delay-unit=ms,where=host:a"],
        ),
    ] {
        refused("x.csv", text, &words);
    }
    // Rows of one day are no series.
    let text = "Date,Time,host,rtt_ms\n02/28/19,23:30,a,5\n02/28/19,23:31,b,6\n02/28/19,23:32,a,5\n02/28/19,23:33,b,7\n";
    assert_eq!(read("x.csv", text).length(), ms(4 * MINUTE));
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
