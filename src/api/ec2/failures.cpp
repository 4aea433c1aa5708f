#include "ec2/failures.hpp"

#include <algorithm>

namespace trainyard::api::ec2 {
namespace {

bool well_formed(const IdForm& form, std::string_view id) {
  if (!id.starts_with(form.prefix)) return false;
  const std::string_view digits = id.substr(form.prefix.size());
  return (digits.size() == 8 || digits.size() == 17) && std::ranges::all_of(digits, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

Failure invalid_id(const IdForm& form, std::string_view id) {
  const std::string shown = shorten(id, 256);
  if (!well_formed(form, id))
    return ec2_failure(form.malformed, "Invalid id: \"" + shown + "\" (expecting \"" +
                                           std::string(form.prefix) + "...\")");
  return ec2_failure(form.not_found,
                     "The " + std::string(form.resource) + " '" + shown + "' does not exist");
}

}  // namespace trainyard::api::ec2
