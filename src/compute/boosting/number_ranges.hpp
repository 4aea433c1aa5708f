// A NumberRange is the interval of a hyperparameter, in the notation of SageMaker's errors.
//
// Threads: plain values. Errors: none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::boosting {

// "3.0", "0.1", "1e-05": a number as Python prints it.
std::string python_number(double value);
// "['a', 'b']"
std::string python_list(const std::vector<std::string>& texts);

struct NumberRange {
  std::string_view least, most;  // "": without a limit
  bool least_is_open = false, most_is_open = false;

  bool contains(double value) const;
  std::string text() const;  // "(0, 1]", "[0, +inf)"
};

}  // namespace trainyard::boosting
