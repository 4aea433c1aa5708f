#include "base/time.hpp"

#include <array>
#include <cstdio>

namespace trainyard {
namespace {

using namespace std::chrono;

constexpr std::array<const char*, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

struct Civil {
  int year, month, day, hour, minute, second, millisecond;
};

Civil civil(Instant instant) {
  const auto day_point = floor<days>(instant);
  const year_month_day date{day_point};
  const hh_mm_ss<Duration> clock{instant - day_point};
  return {int(date.year()),
          int(unsigned(date.month())),
          int(unsigned(date.day())),
          int(clock.hours().count()),
          int(clock.minutes().count()),
          int(clock.seconds().count()),
          int(clock.subseconds().count())};
}

Result<Instant> from_civil(const Civil& c, std::string_view text) {
  const year_month_day date{year{c.year}, month{unsigned(c.month)}, day{unsigned(c.day)}};
  if (!date.ok() || c.hour < 0 || c.hour > 23 || c.minute < 0 || c.minute > 59 || c.second < 0 ||
      c.second > 60)
    return invalid("'" + std::string(text) + "' is not a valid date");
  return Instant{sys_days{date}} + hours{c.hour} + minutes{c.minute} + seconds{c.second} +
         Duration{c.millisecond};
}

// Reads exactly `digits` decimal digits at `at`; returns -1 if the text has fewer there.
int number(std::string_view text, size_t at, size_t digits) {
  if (at + digits > text.size()) return -1;
  int value = 0;
  for (size_t i = at; i < at + digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

// Writes the last `digits` decimal digits of the value at `at`.
void put_number(std::string& text, size_t at, size_t digits, int value) {
  for (; digits-- > 0; value /= 10) text[at + digits] = char('0' + value % 10);
}

// Returns the year with four digits, or with as many as it has.
std::string year_text(int year) {
  if (year >= 0 && year <= 9999) {
    std::string text = "0000";
    put_number(text, 0, 4, year);
    return text;
  }
  char text[16];
  std::snprintf(text, sizeof text, "%04d", year);
  return text;
}

}  // namespace

// Not by printf(), which took a quarter of a query that groups events by time.
std::string to_iso8601(Instant instant, bool with_milliseconds) {
  const Civil c = civil(instant);
  std::string text = with_milliseconds ? "0000-00-00T00:00:00.000Z" : "0000-00-00T00:00:00Z";
  put_number(text, 5, 2, c.month);
  put_number(text, 8, 2, c.day);
  put_number(text, 11, 2, c.hour);
  put_number(text, 14, 2, c.minute);
  put_number(text, 17, 2, c.second);
  if (with_milliseconds) put_number(text, 20, 3, c.millisecond);
  return text.replace(0, 4, year_text(c.year));
}

std::string to_basic_iso8601(Instant instant) {
  const Civil c = civil(instant);
  std::string text = "00000000T000000Z";
  put_number(text, 4, 2, c.month);
  put_number(text, 6, 2, c.day);
  put_number(text, 9, 2, c.hour);
  put_number(text, 11, 2, c.minute);
  put_number(text, 13, 2, c.second);
  return text.replace(0, 4, year_text(c.year));
}

std::string to_http_date(Instant instant) {
  const Civil c = civil(instant);
  const weekday day_of_week{floor<days>(instant)};
  char text[64];
  std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT",
                kDays[day_of_week.c_encoding()], c.day, kMonths[size_t(c.month - 1)], c.year,
                c.hour, c.minute, c.second);
  return text;
}

Result<Instant> parse_basic_iso8601(std::string_view text) {
  if (text.size() != 16 || text[8] != 'T' || text[15] != 'Z')
    return invalid("'" + std::string(text) + "' is not of the form YYYYMMDDTHHMMSSZ");
  const Civil c{number(text, 0, 4),
                number(text, 4, 2),
                number(text, 6, 2),
                number(text, 9, 2),
                number(text, 11, 2),
                number(text, 13, 2),
                0};
  if (c.year < 0 || c.month < 0 || c.day < 0)
    return invalid("'" + std::string(text) + "' is not of the form YYYYMMDDTHHMMSSZ");
  return from_civil(c, text);
}

Result<Instant> parse_iso8601(std::string_view text) {
  const auto bad = [&] {
    return invalid("'" + std::string(text) + "' is not an ISO 8601 instant");
  };
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' ||
      (text[10] != 'T' && text[10] != ' ') || text[13] != ':' || text[16] != ':')
    return bad();
  Civil c{number(text, 0, 4),
          number(text, 5, 2),
          number(text, 8, 2),
          number(text, 11, 2),
          number(text, 14, 2),
          number(text, 17, 2),
          0};
  if (c.year < 0 || c.month < 0 || c.day < 0) return bad();
  size_t at = 19;
  if (text[at] == '.') {
    int scale = 100;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, scale /= 10)
      c.millisecond += (text[at] - '0') * scale;
  }
  const Instant local = TRY(from_civil(c, text));
  const std::string_view zone = text.substr(at);
  if (zone == "Z") return local;
  if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':') return bad();
  const int offset_hours = number(zone, 1, 2);
  const int offset_minutes = number(zone, 4, 2);
  if (offset_hours < 0 || offset_minutes < 0) return bad();
  const auto offset = hours{offset_hours} + minutes{offset_minutes};
  return zone[0] == '+' ? Instant{local - offset} : Instant{local + offset};
}

Result<Instant> parse_http_date(std::string_view text) {
  const auto bad = [&] { return invalid("'" + std::string(text) + "' is not an HTTP date"); };
  if (text.size() != 29 || text.substr(25) != " GMT" || text[3] != ',') return bad();
  int month = 0;
  for (size_t i = 0; i < kMonths.size(); ++i)
    if (text.substr(8, 3) == kMonths[i]) month = int(i) + 1;
  const Civil c{
      number(text, 12, 4), month, number(text, 5, 2), number(text, 17, 2), number(text, 20, 2),
      number(text, 23, 2), 0};
  if (c.year < 0 || c.day < 0 || month == 0) return bad();
  return from_civil(c, text);
}

}  // namespace trainyard
