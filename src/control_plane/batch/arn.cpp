#include "batch/arn.hpp"

namespace trainyard::batch {

std::string arn_of(const std::string& account, const std::string& region, std::string_view kind,
                   const std::string& name) {
  return "arn:aws:batch:" + region + ":" + account + ":" + std::string(kind) + "/" + name;
}

std::string_view name_in_arn(std::string_view text, std::string_view kind) {
  if (!text.starts_with("arn:")) return text;
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || !text.substr(0, slash).ends_with(":" + std::string(kind)))
    return text;
  return text.substr(slash + 1);
}

}  // namespace trainyard::batch
