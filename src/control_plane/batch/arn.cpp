#include "batch/arn.hpp"

namespace trainyard::batch {

std::string arn_of(const std::string& account, const std::string& region, std::string_view kind,
                   const std::string& name) {
  return "arn:aws:batch:" + region + ":" + account + ":" + std::string(kind) + "/" + name;
}

std::string ecs_arn(const std::string& account, const std::string& region, std::string_view kind,
                    const std::string& cluster, const std::string& id) {
  return "arn:aws:ecs:" + region + ":" + account + ":" + std::string(kind) + "/" + cluster + "/" +
         id;
}

std::string_view name_in_arn(std::string_view text, std::string_view kind) {
  if (!text.starts_with("arn:")) return text;
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || !text.substr(0, slash).ends_with(":" + std::string(kind)))
    return text;
  return text.substr(slash + 1);
}

std::string definition_name(std::string_view arn) {
  const size_t slash = arn.rfind('/');
  const std::string_view with_revision =
      arn.substr(slash == std::string_view::npos ? 0 : slash + 1);
  return std::string(with_revision.substr(0, with_revision.rfind(':')));
}

}  // namespace trainyard::batch
