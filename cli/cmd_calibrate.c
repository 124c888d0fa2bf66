#include "cli/commands.h"
int cmd_calibrate(int argc, char **argv){(void)argc;(void)argv;return 1;}
