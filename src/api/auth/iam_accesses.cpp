#include "auth/iam_accesses.hpp"

#include <string>
#include <utility>

#include "auth/member_texts.hpp"
#include "auth/request_tags.hpp"

namespace trainyard::api {
namespace {

constexpr std::string_view kAllResources = "*";

std::string iam_arn(const Context& context, std::string_view kind, std::string_view path,
                    std::string_view name) {
  return std::string("arn:aws:iam::")
      .append(context.principal.account)
      .append(":")
      .append(kind)
      .append(path)
      .append(name);
}

// The resource of an IAM request, as on AWS: the entity that it changes or reads, which is the
// group and not the user that joins it; a policy, if the request names no entity.
std::string iam_resource(const Context& context, const shapes::Shape* shape, const void* input) {
  if (!shape) return std::string(kAllResources);
  for (const auto& [name, kind] : {std::pair{"InstanceProfileName", "instance-profile"},
                                   {"RoleName", "role"},
                                   {"GroupName", "group"},
                                   {"UserName", "user"},
                                   {"PolicyName", "policy"}}) {
    const std::string text = member_text(*shape, input, name);
    if (text.empty()) continue;
    std::string path = member_text(*shape, input, "Path");
    if (path.empty()) path = "/";
    return iam_arn(context, kind, path, text);
  }
  for (const char* name : {"PolicyArn", "PolicySourceArn"})
    if (std::string arn = member_text(*shape, input, name); !arn.empty()) return arn;
  return std::string(kAllResources);
}

}  // namespace

void add_iam_accesses(const Context& context, const shapes::OperationShape& operation,
                      const void* input, Accesses& out) {
  const std::string action = "iam:" + std::string(operation.name);
  out.all.push_back({action, iam_resource(context, operation.input, input)});
  if (!operation.input) return;
  const auto text = [&](const char* member) {
    return member_text(*operation.input, input, member);
  };
  for (const auto& [member, key] : {std::pair{"PolicyArn", "iam:PolicyARN"},
                                    {"PermissionsBoundary", "iam:PermissionsBoundary"}})
    if (std::string arn = text(member); !arn.empty()) set(out.values, key, {std::move(arn)});
  // The new name of an entity is a resource, too.
  for (const auto& [member, kind] : {std::pair{"NewUserName", "user"}, {"NewGroupName", "group"}})
    if (const std::string name = text(member); !name.empty()) {
      const std::string path = text("NewPath");
      out.all.push_back({action, iam_arn(context, kind, path.empty() ? "/" : path, name)});
    }
  // As on AWS: principals that use a profile get the rights of its role.
  if (operation.name == "AddRoleToInstanceProfile") {
    std::string role = iam_arn(context, "role", "/", text("RoleName"));
    out.all.push_back({"iam:PassRole", role});
    out.roles.push_back({std::move(role), "ec2.amazonaws.com"});
  }
}

}  // namespace trainyard::api
