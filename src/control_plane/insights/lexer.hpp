// Splits the text of a query into tokens.
//
// Threads: pure. Errors: a QueryFault with the position.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::insights {

inline constexpr size_t kQueryBytesMax = 10'000;  // as AWS
inline constexpr size_t kTokensMax = 2'000;       // also limits the depth of `a + a + a ..`

// A QueryFault is an error in the text of a query between the byte offsets `begin` (inclusive) and
// `end` (exclusive).
struct QueryFault {
  size_t begin = 0;
  size_t end = 0;
  std::string message;
};

struct Token {
  enum class Kind {
    word,      // a field, a function or a keyword: latency, @message, a.b.0
    quoted,    // a field in backticks
    number,    // 12, 0.5, 1e3
    duration,  // 5m, 1h: `number` is in milliseconds
    text,      // '..' or ".."
    regex,     // /../
    symbol,    // ( ) , | = != < <= > >= =~ + - * / % ^ [ ]
    end
  };
  Kind kind = Kind::end;
  std::string text;   // without quotation marks, escapes resolved
  double number = 0;  // for number and duration
  size_t begin = 0;
  size_t end = 0;
};

// Appends the tokens of a query; the last is `end`. After an error, sets `fault` and returns false.
bool tokenize(std::string_view query, std::vector<Token>& tokens, QueryFault& fault);

}  // namespace trainyard::insights
