// `trainyard user`: adds users with access keys, lists users, and removes them, by calls of IAM.
#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/nearest.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/user_view.hpp"
#include "client/query.hpp"
#include "os/files.hpp"

namespace trainyard::cli {
namespace {

using client::items_of;

Result<Json> iam(CommandContext& context, const std::string& operation, const Json& question) {
  return context.client.call(client::Service::iam, operation, question);
}

// Returns the items of all pages.
Result<std::vector<Json>> all_pages(CommandContext& context, const std::string& operation,
                                    Json question, const char* list) {
  std::vector<Json> all;
  for (;;) {
    const Json page = TRY(iam(context, operation, question));
    for (const Json& item : items_of(page, list)) all.push_back(item);
    if (page.value("IsTruncated", "") != "true") return all;
    question["Marker"] = page.value("Marker", "");
  }
}

// Returns a member of each item of all pages; items that are texts themselves have no member.
Result<std::vector<std::string>> texts(CommandContext& context, const std::string& operation,
                                       const std::string& user, const char* list,
                                       const char* member) {
  std::vector<std::string> all;
  for (const Json& item : TRY(all_pages(context, operation, {{"UserName", user}}, list)))
    all.push_back(item.is_string() ? item.get<std::string>() : item.value(member, ""));
  return all;
}

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  for (const auto word : split(list, ','))
    if (const auto trimmed = trim(word); !trimmed.empty()) words.emplace_back(trimmed);
  return words;
}

// Converts names of managed policies to ARNs.
Result<std::vector<std::string>> find_managed_policies(CommandContext& context,
                                                       const std::vector<std::string>& names) {
  if (names.empty()) return std::vector<std::string>();
  std::vector<std::string> known, arns;
  const auto all = TRY(all_pages(context, "ListPolicies", {{"Scope", "All"}}, "Policies"));
  for (const Json& policy : all) known.push_back(policy.value("PolicyName", ""));
  for (const std::string& name : names) {
    if (name.starts_with("arn:")) {
      arns.push_back(name);
      continue;
    }
    const auto found = std::ranges::find(known, name);
    if (found == known.end()) {
      const std::string near = nearest(name, known);
      return not_found("policy '" + name + "' not found" +
                       (near.empty() ? "" : "; did you mean " + near + "?") +
                       " `aws iam list-policies` lists them");
    }
    arns.push_back(all[size_t(found - known.begin())].value("Arn", ""));
  }
  return arns;
}

struct NewUser {
  std::string name;
  std::vector<std::string> groups, policies;  // policies: ARNs
  std::string endpoint, env_file;
};

struct Removed {
  size_t keys = 0, policies = 0, groups = 0;
};

// Deletes a user's keys, policies and memberships, then the user, in the order that IAM requires.
Result<Removed> remove_all_of(CommandContext& context, const std::string& user) {
  Removed removed;
  for (const auto& id :
       TRY(texts(context, "ListAccessKeys", user, "AccessKeyMetadata", "AccessKeyId"))) {
    TRY(iam(context, "DeleteAccessKey", {{"UserName", user}, {"AccessKeyId", id}}));
    ++removed.keys;
  }
  for (const auto& arn :
       TRY(texts(context, "ListAttachedUserPolicies", user, "AttachedPolicies", "PolicyArn"))) {
    TRY(iam(context, "DetachUserPolicy", {{"UserName", user}, {"PolicyArn", arn}}));
    ++removed.policies;
  }
  for (const auto& policy : TRY(texts(context, "ListUserPolicies", user, "PolicyNames", ""))) {
    TRY(iam(context, "DeleteUserPolicy", {{"UserName", user}, {"PolicyName", policy}}));
    ++removed.policies;
  }
  for (const auto& group : TRY(texts(context, "ListGroupsForUser", user, "Groups", "GroupName"))) {
    TRY(iam(context, "RemoveUserFromGroup", {{"UserName", user}, {"GroupName", group}}));
    ++removed.groups;
  }
  TRY(iam(context, "DeleteUser", {{"UserName", user}}));
  return removed;
}

// Adds the user to groups, attaches policies, makes a key, and writes the --env file.
Result<Key> equip(CommandContext& context, const NewUser& user) {
  for (const auto& group : user.groups)
    TRY(iam(context, "AddUserToGroup", {{"UserName", user.name}, {"GroupName", group}}));
  for (const auto& arn : user.policies)
    TRY(iam(context, "AttachUserPolicy", {{"UserName", user.name}, {"PolicyArn", arn}}));
  const Json answer = TRY(iam(context, "CreateAccessKey", {{"UserName", user.name}}));
  const Json made = answer.value("AccessKey", Json::object());
  Key key{made.value("AccessKeyId", ""), made.value("SecretAccessKey", "")};
  if (key.id.empty() || key.secret.empty()) return internal("the new access key has no secret");
  if (!user.env_file.empty()) {
    const std::string script = TRY(context.hand_over(user.name, key, user.endpoint));
    TRY(os::write_file_durably(user.env_file, script, 0600));
  }
  return key;
}

std::string line_of(const OutputStyle& style, const std::string& title, const std::string& text) {
  constexpr int kTitleWidth = 9;
  return paint(style, Paint::dim, pad(style, title, kTitleWidth)) + "  " + text + "\n";
}

std::string listed(const std::vector<std::string>& names) {
  const std::string text = join(names, ", ");
  return text.empty() ? "none" : text;
}

// Quotes a word for a shell.
std::string quoted(const std::string& word) {
  const bool plain = std::ranges::all_of(word, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("/._-:,@%+=[]").find(c) != std::string_view::npos;
  });
  if (plain && !word.empty()) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

// Returns the command that prints the user's environment, with the same options as this command.
std::string hand_over_command(const CommandContext& context, const NewUser& user) {
  std::string command = "trainyard env --user " + user.name;
  if (!user.endpoint.empty()) command += " --endpoint " + quoted(user.endpoint);
  if (!context.data_directory.empty()) command += " --data " + quoted(context.data_directory);
  return command;
}

std::string new_user_page(const CommandContext& context, const NewUser& user,
                          const std::string& arn, const Key& key) {
  const OutputStyle& style = context.style;
  std::string text = line_of(style, "user", user.name + " (" + arn + ")") +
                     line_of(style, "groups", listed(user.groups)) +
                     line_of(style, "policies", listed(user.policies)) +
                     line_of(style, "key", key.id);
  if (user.env_file.empty()) {
    text += line_of(style, "secret", key.secret + " (not shown again)");
    text += line_of(style, "hand over", hand_over_command(context, user));
  } else {
    text += line_of(style, "hand over",
                    user.env_file + ", which " + user.name + " evaluates in a shell: . ./" +
                        user.env_file.substr(user.env_file.rfind('/') + 1));
  }
  if (user.groups.empty() && user.policies.empty())
    text += paint(style, Paint::yellow,
                  user.name + " may do nothing yet: add the user to a group, or attach a policy") +
            "\n";
  return text;
}

Result<int> add_user(CommandContext& context, const Arguments& arguments, const std::string& name) {
  NewUser user{name,
               words_of(arguments.value("--groups")),
               {},
               arguments.value("--endpoint"),
               arguments.value("--env")};
  // Finds every error that it can before it creates anything.
  for (const auto& group : user.groups)
    TRY(iam(context, "GetGroup", {{"GroupName", group}}).in("the group " + group));
  user.policies = TRY(find_managed_policies(context, words_of(arguments.value("--policies"))));
  if (!user.env_file.empty()) TRY(context.hand_over(name, {"id", "secret"}, user.endpoint));
  const Json made = TRY(iam(context, "CreateUser", {{"UserName", name}}));
  const std::string arn = made.value("User", Json::object()).value("Arn", "");
  const auto key = equip(context, user);
  if (!key) {
    const auto undone = remove_all_of(context, name);
    return Error(key.error())
        .in(undone ? "the user " + name + " was not made"
                   : "the user " + name + " is incomplete; remove it with `trainyard user remove " +
                         name + "`");
  }
  if (!arguments.has("--json")) {
    TRY(context.terminal.write(new_user_page(context, user, arn, *key)));
    return 0;
  }
  Json out{{"UserName", name},
           {"Arn", arn},
           {"Groups", user.groups},
           {"Policies", user.policies},
           {"AccessKeyId", key->id}};
  if (user.env_file.empty()) out["SecretAccessKey"] = key->secret;
  TRY(context.terminal.write(dump(out, 2) + "\n"));
  return 0;
}

Result<UserView> fetch_user(CommandContext& context, const Json& item) {
  UserView user;
  user.name = item.value("UserName", "");
  user.arn = item.value("Arn", "");
  user.groups = TRY(texts(context, "ListGroupsForUser", user.name, "Groups", "GroupName"));
  user.policies =
      TRY(texts(context, "ListAttachedUserPolicies", user.name, "AttachedPolicies", "PolicyName"));
  for (auto& policy : TRY(texts(context, "ListUserPolicies", user.name, "PolicyNames", "")))
    user.policies.push_back(std::move(policy));
  for (const Json& key :
       TRY(all_pages(context, "ListAccessKeys", {{"UserName", user.name}}, "AccessKeyMetadata"))) {
    KeyView& view = user.keys.emplace_back();
    view.id = key.value("AccessKeyId", "");
    view.active = key.value("Status", "") == "Active";
    const Json use = TRY(iam(context, "GetAccessKeyLastUsed", {{"AccessKeyId", view.id}}));
    view.last_used = use.value("AccessKeyLastUsed", Json::object()).value("LastUsedDate", "");
  }
  return user;
}

Result<int> list_users(CommandContext& context, const Arguments& arguments, const std::string&) {
  std::vector<UserView> users;
  for (const Json& item : TRY(all_pages(context, "ListUsers", Json::object(), "Users")))
    users.push_back(TRY(fetch_user(context, item)));
  Json json = Json::array();
  for (const UserView& user : users) json.push_back(to_json(user));
  TRY(context.terminal.write(arguments.has("--json") ? dump(json, 2) + "\n"
                                                     : users_table(context.style, users)));
  return 0;
}

// Fails for a user of the config, whom only the config can remove.
Result<void> check_changeable(CommandContext& context, const std::string& name) {
  const auto found = iam(context, "GetUser", {{"UserName", name}});
  if (!found && found.error().kind == Kind::not_found) {
    const auto keys = texts(context, "ListAccessKeys", name, "AccessKeyMetadata", "AccessKeyId");
    if (keys && !keys->empty())
      return conflict("user '" + name + "' has only the [[access_key]] " + keys->front() +
                      " of the server's config: remove it there");
    return not_found("user '" + name + "' not found; `trainyard user list` lists the users");
  }
  TRY(found);
  // An UpdateUser without changes fails for users of the config, with the reason.
  TRY(iam(context, "UpdateUser", {{"UserName", name}}));
  return {};
}

Result<int> remove_user(CommandContext& context, const Arguments& arguments,
                        const std::string& name) {
  TRY(check_changeable(context, name).in("removing the user " + name));
  const Removed removed = TRY(remove_all_of(context, name).in("removing the user " + name));
  if (arguments.has("--json")) {
    TRY(context.terminal.write(dump(Json{{"UserName", name},
                                         {"AccessKeys", removed.keys},
                                         {"Policies", removed.policies},
                                         {"Groups", removed.groups}},
                                    2) +
                               "\n"));
    return 0;
  }
  TRY(context.terminal.write("removed the user " + name + " with " +
                             counted(removed.keys, "access key") + ", " +
                             counted(removed.policies, "policy", "policies") + " and " +
                             counted(removed.groups, "membership") + "; jobs and objects stay\n"));
  return 0;
}

struct UserAction {
  const char* name;
  bool about_one;  // takes a name
  Result<int> (*run)(CommandContext&, const Arguments&, const std::string& user);
};
constexpr UserAction kUserActions[] = {
    {"add", true, add_user}, {"list", false, list_users}, {"remove", true, remove_user}};

}  // namespace

Result<int> user_command(CommandContext& context, const Arguments& arguments) {
  const std::string& wanted = arguments.operands[0];
  const std::string name = arguments.operands.size() > 1 ? arguments.operands[1] : "";
  std::vector<std::string> known;
  for (const UserAction& action : kUserActions) {
    known.emplace_back(action.name);
    if (wanted != action.name) continue;
    if (action.about_one == name.empty())
      return invalid(action.about_one
                         ? "missing argument NAME: `trainyard user " + wanted + " NAME`"
                         : "unexpected argument '" + name + "': `trainyard user " + wanted + "`");
    return action.run(context, arguments, name);
  }
  const std::string near = nearest(wanted, known);
  return invalid("unknown action '" + wanted + "'" +
                 (near.empty() ? "" : "; did you mean `trainyard user " + near + "`?") +
                 " One of add, list, remove");
}

}  // namespace trainyard::cli
