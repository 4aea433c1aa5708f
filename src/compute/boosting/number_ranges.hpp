// A NumberRange is the allowed interval of a hyperparameter, written as in SageMaker's errors.
//
// Threads: plain values. Errors: none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::boosting {

// Formats a number as Python prints it: "3.0", "0.1", "1e-05".
std::string python_number(double value);
// Formats a list as Python prints it: "['a', 'b']".
std::string python_list(const std::vector<std::string>& texts);

struct NumberRange {
  std::string_view least, most;  // "": unlimited
  bool least_is_open = false, most_is_open = false;

  bool contains(double value) const;
  std::string text() const;  // such as "(0, 1]" or "[0, +inf)"
};

}  // namespace trainyard::boosting
