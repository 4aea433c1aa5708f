// A slash begins a regular expression where an operand is expected: after `like`, `=~`, `not`, `(`,
// and in `parse`. Everywhere else it divides. The lexer decides by the token before it.
#include "insights/lexer.hpp"

#include <algorithm>
#include <optional>

#include "base/text.hpp"

namespace trainyard::insights {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '@' || c == '$' ||
         uint8_t(c) >= 0x80;
}
bool is_word(char c) { return begins_word(c) || is_digit(c) || c == '.' || c == ':'; }

constexpr std::string_view kSymbols[] = {"!=", "<=", ">=", "=~", "==", "(", ")", ",", "|", "=",
                                         "<",  ">",  "+",  "-",  "*",  "/", "%", "^", "[", "]"};

// The milliseconds of a unit of time; 0 if there is none of that name.
double unit_of(std::string_view name) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ms", 1},         {"msec", 1},       {"s", 1e3},         {"sec", 1e3},
      {"second", 1e3},   {"seconds", 1e3},  {"m", 60e3},        {"min", 60e3},
      {"minute", 60e3},  {"minutes", 60e3}, {"h", 3600e3},      {"hr", 3600e3},
      {"hour", 3600e3},  {"hours", 3600e3}, {"d", 86400e3},     {"day", 86400e3},
      {"days", 86400e3}, {"w", 604800e3},   {"week", 604800e3}, {"weeks", 604800e3}};
  for (const auto& [unit, milliseconds] : kUnits)
    if (equals_ignoring_case(unit, name)) return milliseconds;
  return 0;
}

class Lexer {
 public:
  Lexer(std::string_view query, std::vector<Token>& tokens, QueryFault& fault)
      : query_(query), tokens_(tokens), fault_(fault) {}

  bool run() {
    while (skip_blanks(), at_ < query_.size()) {
      if (tokens_.size() >= kTokensMax) return fail(at_, at_ + 1, "the query has too many parts");
      if (!next()) return false;
    }
    tokens_.push_back({.begin = query_.size(), .end = query_.size()});
    return true;
  }

 private:
  bool fail(size_t begin, size_t end, std::string message) {
    fault_ = {begin, std::min(end, query_.size()), std::move(message)};
    return false;
  }

  void skip_blanks() {
    while (at_ < query_.size()) {
      if (query_[at_] == '#') {
        at_ = std::min(query_.find('\n', at_), query_.size());
      } else if (is_space(query_[at_])) {
        ++at_;
      } else {
        return;
      }
    }
  }

  void push(Token::Kind kind, size_t begin, std::string text, double number = 0) {
    tokens_.push_back({kind, std::move(text), number, begin, at_});
  }

  bool next() {
    const char c = query_[at_];
    if (c == '"' || c == '\'' || c == '`') return quoted(c);
    if (is_digit(c) || (c == '.' && at_ + 1 < query_.size() && is_digit(query_[at_ + 1])))
      return number();
    if (begins_word(c)) {
      const size_t begin = at_;
      while (at_ < query_.size() && is_word(query_[at_])) ++at_;
      push(Token::Kind::word, begin, std::string(query_.substr(begin, at_ - begin)));
      return true;
    }
    if (c == '/' && expects_regex()) return regex();
    for (const std::string_view symbol : kSymbols) {
      if (!query_.substr(at_).starts_with(symbol)) continue;
      const size_t begin = at_;
      at_ += symbol.size();
      push(Token::Kind::symbol, begin, std::string(symbol == "==" ? "=" : symbol));
      return true;
    }
    return fail(at_, at_ + 1, "unexpected character");
  }

  bool quoted(char mark) {
    const size_t begin = at_++;
    std::string text;
    for (; at_ < query_.size() && query_[at_] != mark; ++at_) {
      // A backslash that escapes neither a mark nor itself stays, for the patterns of parse.
      if (query_[at_] == '\\' && at_ + 1 < query_.size() &&
          (query_[at_ + 1] == mark || query_[at_ + 1] == '\\'))
        ++at_;
      text += query_[at_];
    }
    if (at_ == query_.size()) return fail(begin, at_, "a quotation mark is not closed");
    ++at_;
    push(mark == '`' ? Token::Kind::quoted : Token::Kind::text, begin, std::move(text));
    return true;
  }

  bool number() {
    const size_t begin = at_;
    const auto digits = [&] {
      while (at_ < query_.size() && is_digit(query_[at_])) ++at_;
    };
    digits();
    if (at_ < query_.size() && query_[at_] == '.') {
      ++at_;
      digits();
    }
    const size_t before = at_;
    if (at_ < query_.size() && (query_[at_] == 'e' || query_[at_] == 'E')) {
      ++at_;
      if (at_ < query_.size() && (query_[at_] == '+' || query_[at_] == '-')) ++at_;
      if (at_ < query_.size() && is_digit(query_[at_]))
        digits();
      else
        at_ = before;
    }
    const auto value = parse_double(query_.substr(begin, at_ - begin));
    if (!value) return fail(begin, at_, "not a number");
    const size_t unit = at_;
    while (at_ < query_.size() && (begins_word(query_[at_]) || is_digit(query_[at_]))) ++at_;
    if (unit == at_) {
      push(Token::Kind::number, begin, std::string(query_.substr(begin, at_ - begin)), *value);
      return true;
    }
    const double milliseconds = unit_of(query_.substr(unit, at_ - unit));
    if (milliseconds == 0) return fail(begin, at_, "unknown unit of time");
    push(Token::Kind::duration, begin, std::string(query_.substr(begin, at_ - begin)),
         *value * milliseconds);
    return true;
  }

  bool expects_regex() const {
    if (tokens_.empty()) return true;
    const Token& last = tokens_.back();
    if (last.kind == Token::Kind::symbol) return last.text != ")" && last.text != "]";
    if (last.kind != Token::Kind::word) return false;
    // `parse @message /../`: the word before the field is parse.
    if (tokens_.size() >= 2 && equals_ignoring_case(tokens_[tokens_.size() - 2].text, "parse"))
      return true;
    return equals_ignoring_case(last.text, "like") || equals_ignoring_case(last.text, "parse");
  }

  bool regex() {
    const size_t begin = at_++;
    std::string text;
    for (; at_ < query_.size() && query_[at_] != '/'; ++at_) {
      if (query_[at_] == '\\' && at_ + 1 < query_.size()) {
        if (query_[at_ + 1] != '/') text += '\\';
        ++at_;
      }
      text += query_[at_];
    }
    if (at_ >= query_.size())
      return fail(begin, query_.size(), "a regular expression is not closed");
    ++at_;
    push(Token::Kind::regex, begin, std::move(text));
    return true;
  }

  const std::string_view query_;
  std::vector<Token>& tokens_;
  QueryFault& fault_;
  size_t at_ = 0;
};

}  // namespace

bool tokenize(std::string_view query, std::vector<Token>& tokens, QueryFault& fault) {
  tokens.clear();
  if (query.size() > kQueryBytesMax) {
    fault = {kQueryBytesMax, query.size(),
             "the query is longer than " + std::to_string(kQueryBytesMax) + " bytes"};
    return false;
  }
  return Lexer(query, tokens, fault).run();
}

}  // namespace trainyard::insights
