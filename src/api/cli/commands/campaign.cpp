// `trainyard campaign`: runs, follows and shows campaigns, and queries the catalogue from which
// they are made.
#include <algorithm>
#include <filesystem>
#include <map>

#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/campaign_view.hpp"
#include "cli/commands.hpp"
#include "cli/request_file.hpp"
#include "os/files.hpp"

namespace trainyard::cli {
namespace {

using client::Service;

constexpr size_t kFileBytesMax = 1 << 20;
constexpr Duration kPollInterval = 500ms;

Result<Json> call_own(CommandContext& context, const std::string& operation, const Json& question) {
  return context.client.call(Service::trainyard, operation, question);
}

// Reads the file and converts it to the server's form, in which the job's short form is expanded.
Result<Json> read_campaign(CommandContext& context, const Arguments& arguments,
                           const std::string& path) {
  const std::string text = TRY(os::read_file(path, kFileBytesMax).in("reading the campaign"));
  const std::string file = std::filesystem::path(path).filename().string();
  Json campaign =
      trim(text).starts_with('{') ? TRY(parse_json(text)) : TRY(json_of_toml(text, file));
  if (!campaign.is_object())
    return invalid("reading the campaign: " + file + " is not a JSON object or a TOML document");
  if (const auto name = arguments.value("--name"); !name.empty()) campaign["name"] = name;
  if (!campaign.contains("name")) campaign["name"] = std::filesystem::path(path).stem().string();
  if (const auto job = campaign.find("training_job"); job != campaign.end()) {
    auto submission =
        TRY(read_submission(dump(*job), {file, "{job.region}", context.clock.now()}, "row")
                .in("training_job"));
    if (!submission.uploads.empty())
      return invalid("training_job: " + submission.uploads.front().path +
                     " is a local path; the channels of a campaign must be s3:// URIs");
    TRY(add_role(context, submission.request));
    submission.request.erase("TrainingJobName");
    *job = std::move(submission.request);
  }
  return campaign;
}

Result<int> finish(CommandContext& context, const std::string& name) {
  const Json campaign = TRY(call_own(context, "DescribeCampaign", {{"CampaignName", name}}));
  const std::string status = campaign.value("Status", "");
  TRY(context.terminal.write(results_page(context.style, campaign, context.clock.now())));
  TRY(context.terminal.write(name + " " + status + "\n"));
  return exit_code_of(status);
}

// Draws the campaign's regions until it ends. If the output cannot be redrawn, a line is printed
// for each change.
Result<int> follow(CommandContext& context, const std::string& name) {
  context.terminal.watch_interrupts();
  std::map<std::string, std::string> said;
  size_t lines = 0;
  const auto erase = [&] {
    return lines == 0 ? std::string() : "\033[" + std::to_string(lines) + "A\r\033[J";
  };
  for (;;) {
    update_size(context);
    const Json campaign =
        TRY(call_own(context, "DescribeCampaign", {{"CampaignName", name}, {"WithoutRows", true}}));
    const std::string status = campaign.value("Status", "");
    const bool over = status != "InProgress" && status != "Stopping";
    if (context.style.live) {
      const std::string page =
          over ? "" : regions_page(context.style, campaign, context.clock.now());
      TRY(context.terminal.write(erase() + page));
      lines = size_t(std::count(page.begin(), page.end(), '\n'));
    } else {
      for (const Json& region : campaign.value("Regions", Json::array())) {
        const std::string line = region_line(region);
        if (std::exchange(said[region.value("Region", "")], line) != line)
          TRY(context.terminal.write(line));
      }
    }
    if (over) return finish(context, name);
    if (context.terminal.wait(kPollInterval, false, -1).interrupted) {
      context.terminal.write_error(
          "trainyard: " + name + " keeps running; `trainyard campaign follow " + name +
          "` follows it again, `trainyard campaign stop " + name + "` stops it\n");
      return kExitInterrupted;
    }
  }
}

Result<int> run_file(CommandContext& context, const Arguments& arguments, const std::string& path) {
  const Json definition = TRY(read_campaign(context, arguments, path).in(path));
  const bool dry_run = arguments.has("--dry-run");
  Json question{{"Definition", dump(definition)}};
  if (dry_run) question["DryRun"] = true;
  const Json campaign = TRY(call_own(context, "CreateCampaign", question));
  if (arguments.has("--json")) {
    TRY(context.terminal.write(dump(campaign, 2) + "\n"));
    return 0;
  }
  if (dry_run) {
    TRY(context.terminal.write(plan_page(context.style, campaign)));
    return 0;
  }
  const std::string name = campaign.value("CampaignName", "");
  if (arguments.has("--detach") || campaign.value("Standing", false)) {
    TRY(context.terminal.write(name + "\n"));
    context.terminal.write_error("trainyard: submitted; `trainyard campaign follow " + name +
                                 "` follows it\n");
    return 0;
  }
  return follow(context, name);
}

Result<std::string> statement_of(const std::string& operand) {
  if (!operand.starts_with('@')) return operand;
  return os::read_file(operand.substr(1), kFileBytesMax).in("reading the statement");
}

using Action = Result<int> (*)(CommandContext&, const Arguments&, const std::string& operand);

Result<int> list(CommandContext& context, const Arguments& arguments, const std::string&) {
  const Json answer = TRY(call_own(context, "ListCampaigns", Json::object()));
  TRY(context.terminal.write(arguments.has("--json")
                                 ? dump(answer, 2) + "\n"
                                 : campaigns_table(context.style, answer, context.clock.now())));
  return 0;
}

Result<int> show(CommandContext& context, const Arguments& arguments, const std::string& name) {
  const Json answer = TRY(call_own(context, "DescribeCampaign", {{"CampaignName", name}}));
  if (arguments.has("--json")) {
    TRY(context.terminal.write(dump(answer, 2) + "\n"));
    return 0;
  }
  TRY(context.terminal.write(regions_page(context.style, answer, context.clock.now()) + "\n" +
                             results_page(context.style, answer, context.clock.now())));
  return 0;
}

Result<int> follow_again(CommandContext& context, const Arguments&, const std::string& name) {
  return follow(context, name);
}

Result<int> stop(CommandContext& context, const Arguments&, const std::string& name) {
  TRY(call_own(context, "StopCampaign", {{"CampaignName", name}}));
  TRY(context.terminal.write(name + " is stopping\n"));
  return 0;
}

Result<int> query(CommandContext& context, const Arguments& arguments, const std::string& operand) {
  const std::string statement = TRY(statement_of(operand));
  const Json answer = TRY(call_own(context, "QueryCatalogue", {{"Statement", statement}}));
  TRY(context.terminal.write(arguments.has("--json") ? dump(answer, 2) + "\n"
                                                     : answer_table(context.style, answer)));
  return 0;
}

Result<int> change(CommandContext& context, const Arguments&, const std::string& operand) {
  const std::string statement = TRY(statement_of(operand));
  const Json answer = TRY(call_own(context, "ChangeCatalogue", {{"Statement", statement}}));
  TRY(context.terminal.write(counted(answer.value("RowsChanged", uint64_t(0)), "row") +
                             " changed\n"));
  return 0;
}

struct Named {
  const char* name;
  const char* operand;  // nullptr: none
  Action run;
};
constexpr Named kActions[] = {{"run", "FILE", run_file}, {"list", nullptr, list},
                              {"show", "NAME", show},    {"follow", "NAME", follow_again},
                              {"stop", "NAME", stop},    {"query", "SQL", query},
                              {"change", "SQL", change}};

}  // namespace

Result<int> campaign_command(CommandContext& context, const Arguments& arguments) {
  const std::string& name = arguments.operands[0];
  const std::string operand = arguments.operands.size() > 1 ? arguments.operands[1] : "";
  for (const Named& action : kActions) {
    if (name != action.name) continue;
    if (action.operand && operand.empty())
      return invalid("`trainyard campaign " + name + "` needs " + action.operand);
    return action.run(context, arguments, operand);
  }
  return invalid("unknown command `trainyard campaign " + name +
                 "`: use run, list, show, follow, stop, query or change");
}

}  // namespace trainyard::cli
