#include "entry/prepare.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>

#include "base/text.hpp"
#include "contract/aws_texts.hpp"
#include "entry/failure.hpp"
#include "entry/gpus.hpp"
#include "os/files.hpp"

namespace trainyard::entry {
namespace {

// The query that the image's Python runs, once, when the plan depends on its result.
constexpr const char* kQueryPython =
    "import importlib.util, json, os, sys, sysconfig\n"
    "def there(name):\n"
    "    try:\n"
    "        return importlib.util.find_spec(name) is not None\n"
    "    except Exception:\n"
    "        return False\n"
    "place = sysconfig.get_path('purelib')\n"
    "while not os.path.exists(place):\n"
    "    place = os.path.dirname(place)\n"
    "print(json.dumps({'writable': os.access(place, os.W_OK),\n"
    "    'externally_managed': sys.prefix == sys.base_prefix and\n"
    "        os.path.exists(os.path.join(sysconfig.get_path('stdlib'), 'EXTERNALLY-MANAGED')),\n"
    "    'mpi4py': there('mpi4py'), 'tensorflow': there('tensorflow'), 'smdistributed': "
    "there('smdistributed')}))\n";

// The limit for the search in the source directory: larger files are not sources.
constexpr size_t kSourceFilesMax = 2000;
constexpr size_t kSourceFileBytesMax = 1 << 20;
constexpr size_t kNamesShownMax = 12;

Error not_found_in(const std::string& directory, const std::string& program) {
  std::string names;
  size_t count = 0;
  if (const auto listed = os::list_directory(directory)) {
    for (const auto& name : *listed)
      if (++count <= kNamesShownMax) names += (names.empty() ? "" : ", ") + name;
  }
  if (count > kNamesShownMax) names += ", ..";
  return invalid("The training entry point '" + program + "' is not in the source directory; " +
                 directory + (count == 0 ? " is empty" : " holds " + names));
}

Result<Found> read_inputs(const HostSetup& setup) {
  Found found;
  found.base = setup.base;
  const std::string config = setup.base + "/input/config/";
  found.hyperparameters = TRY(os::read_file(config + "hyperparameters.json"));
  found.resource_config = TRY(os::read_file(config + "resourceconfig.json"));
  found.input_data_config = TRY(os::read_file(config + "inputdataconfig.json"));
  found.variables = setup.variables;
  found.cpus = setup.entry_config.cpus > 0 ? static_cast<int>(std::ceil(setup.entry_config.cpus))
                                           : count_cpus();
  for (const auto& gpu : find_gpus()) found.gpus.push_back(gpu.cpus);
  return found;
}

// Copies the sources that the image has elsewhere, if no archive was unpacked.
Result<void> bring_code(const Settings& settings) {
  const std::string code = settings.code_directory();
  TRY(os::make_directories(code));
  if (settings.module_dir == code || !TRY(os::list_directory(code)).empty()) return {};
  std::error_code error;
  if (!std::filesystem::is_directory(settings.module_dir, error)) return {};
  std::filesystem::copy(
      settings.module_dir, code,
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks,
      error);
  if (error)
    return internal("copying " + settings.module_dir + " to " + code + ": " + error.message());
  return {};
}

bool code_names(const std::string& directory, std::string_view word) {
  std::error_code error;
  size_t files = 0;
  for (auto each = std::filesystem::recursive_directory_iterator(directory, error);
       !error && each != std::filesystem::recursive_directory_iterator() && files < kSourceFilesMax;
       each.increment(error)) {
    if (each->path().extension() != ".py" || !each->is_regular_file(error)) continue;
    ++files;
    const auto text = os::read_file(each->path().string(), kSourceFileBytesMax);
    if (text && text->find(word) != std::string::npos) return true;
  }
  return false;
}

class Preparer {
 public:
  Preparer(const HostSetup& setup, Signals& signals) : setup_(setup), signals_(signals) {}

  Result<Prepared> prepare() {
    Prepared prepared;
    prepared.settings = TRY(read_settings(TRY(read_inputs(setup_))));
    Settings& settings = prepared.settings;
    TRY(check_program(settings.program));
    TRY(bring_code(settings));
    prepared.variables = setup_.variables;
    for (auto& [name, value] : script_variables(settings, setup_.variables))
      prepared.variables[name] = std::move(value);

    const std::string code = settings.code_directory(), path = prepared.variables["PATH"];
    Image image;
    image.entry = setup_.program;
    image.has_setup = os::exists(code + "/setup.py");
    image.python = find_program("python3", path);
    if (image.python.empty()) image.python = find_program("python", path);
    image.mpirun = find_program("mpirun", path);
    const Program kind = program_kind(settings.program, image.has_setup);
    const bool requirements = kind != Program::command && os::exists(code + "/requirements.txt");
    if (kind != Program::package && !os::exists(code + "/" + settings.program))
      return not_found_in(code, settings.program);
    PythonProperties python;
    if (!image.python.empty() &&
        (requirements || kind == Program::package || !settings.distribution_groups.empty()))
      python = TRY(query_python(image.python, prepared.variables));
    image.mpi4py = python.mpi4py;
    image.tensorflow = python.tensorflow;
    const std::vector<std::string> packages =
        kind == Program::command
            ? std::vector<std::string>()
            : install_arguments(python, kind == Program::package, requirements);
    // Checked after the installation, since the packages may contain it.
    image.smdistributed = python.smdistributed || !packages.empty();
    if (settings.enabled("sagemaker_distributed_dataparallel_enabled"))
      image.code_names_smdistributed = code_names(code, "smdistributed");
    // Makes a plan before the installation of packages, which may take minutes, to report errors
    // early.
    TRY(make_plan(settings, image, prepared.variables));

    if (kind == Program::command) {
      ::chmod((code + "/" + settings.program).c_str(), 0777);
    } else if (!packages.empty()) {
      TRY(install(settings, image.python, packages, kind == Program::package, prepared.variables));
      if (!settings.distribution_groups.empty()) {
        const PythonProperties now = TRY(query_python(image.python, prepared.variables));
        image.mpi4py = image.mpi4py || now.mpi4py;
        image.smdistributed = now.smdistributed;
      }
    }
    prepared.plan = TRY(make_plan(settings, image, prepared.variables));
    return prepared;
  }

  const NotPrepared& why() const { return why_; }

 private:
  // Errors: cancelled, by a stop signal.
  Result<Children::Exit> run(Command command, Children::Kind kind) {
    Children children;
    TRY(children.start(std::move(command), std::move(kind)));
    for (;;) {
      std::vector<pollfd> waits = {{signals_.descriptor(), POLLIN, 0}};
      children.add_waits(waits);
      ::poll(waits.data(), waits.size(), -1);
      if (signals_.take()) {
        children.kill();
        return cancelled("stopped by a signal");
      }
      children.pump();
      for (auto& exit : children.reap()) return std::move(exit);
    }
  }

  Result<PythonProperties> query_python(const std::string& python, const Variables& variables) {
    std::string answer;
    Children::Kind kind;
    kind.change_line = [&](std::string_view line) {
      answer = line;
      return std::string();
    };
    const auto exit = TRY(run({{python, "-c", kQueryPython}, variables, "/"}, std::move(kind)));
    if (exit.code != 0)
      return invalid(python + " cannot be used: " + last_lines(exit.printed.errors, 400));
    return parse_python_properties(answer).in(python);
  }

  Result<void> install(const Settings& settings, const std::string& python,
                       const std::vector<std::string>& arguments, bool package,
                       Variables& variables) {
    const std::string code = settings.code_directory();
    if (std::ranges::find(arguments, "--user") != arguments.end()) {
      // The system's folders are read-only, so packages are installed next to the sources, which
      // are not uploaded.
      variables["PYTHONUSERBASE"] = code + "/.python";
      variables["PATH"] = code + "/.python/bin:" + variables["PATH"];
    }
    variables.try_emplace("PIP_NO_CACHE_DIR", "1");
    variables.try_emplace("PIP_DISABLE_PIP_VERSION_CHECK", "1");
    variables.try_emplace("PIP_ROOT_USER_ACTION", "ignore");
    Command command{{python}, variables, code};
    command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
    const auto exit = TRY(run(std::move(command), {}));
    if (exit.code == 0) return {};
    Failure failure{settings.current_host, 0, exit.code, ""};
    why_.code = exit.code;
    why_.failure = describe_failure(
        package ? contract::kInstallModuleError : contract::kInstallRequirementsError, failure,
        false, exit.printed, exit.command);
    return invalid("installing packages failed: exit code " + std::to_string(exit.code));
  }

  const HostSetup& setup_;
  Signals& signals_;
  NotPrepared why_;
};

}  // namespace

Result<PythonProperties> parse_python_properties(std::string_view json) {
  const auto document = TRY(parse_json(json));
  PythonProperties python;
  python.writable = TRY(bool_at(document, "writable"));
  python.externally_managed = TRY(bool_at(document, "externally_managed"));
  python.mpi4py = TRY(bool_at(document, "mpi4py"));
  python.tensorflow = TRY(bool_at(document, "tensorflow"));
  python.smdistributed = TRY(bool_at(document, "smdistributed"));
  return python;
}

std::vector<std::string> install_arguments(const PythonProperties& python, bool package,
                                           bool requirements) {
  if (!package && !requirements) return {};
  std::vector<std::string> arguments = {"-m", "pip", "install"};
  if (!python.writable) arguments.push_back("--user");
  if (python.externally_managed) arguments.push_back("--break-system-packages");
  if (package) arguments.push_back(".");
  if (requirements) arguments.insert(arguments.end(), {"-r", "requirements.txt"});
  return arguments;
}

Preparation prepare(const HostSetup& setup, Signals& signals) {
  Preparation preparation;
  Preparer preparer(setup, signals);
  auto prepared = preparer.prepare();
  if (prepared) {
    preparation.prepared = std::move(*prepared);
    return preparation;
  }
  preparation.otherwise = preparer.why();
  preparation.otherwise.stopped = prepared.error().kind == Kind::cancelled;
  if (preparation.otherwise.failure.empty()) {
    const bool users = prepared.error().kind == Kind::invalid;
    preparation.otherwise.failure =
        std::string(users ? contract::kClientError : contract::kFrameworkError) +
        prepared.error().message;
  }
  return preparation;
}

}  // namespace trainyard::entry
