// The text of plot.py, which the program carries so that it needs no file beside it. CMake writes it.
#ifndef DPAR_TESTS_LAB_PLOT_SCRIPT_H_
#define DPAR_TESTS_LAB_PLOT_SCRIPT_H_

namespace dpar::lab {

extern const char* const kPlotScript;

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_PLOT_SCRIPT_H_
