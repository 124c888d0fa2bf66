/*
 * cli/new.h - the skeletons of `foretoken new`: files of cli/new/, embedded by the build
 */
#ifndef CLI_NEW_H
#define CLI_NEW_H

extern const char new_scenario_yaml[], new_gpu_yaml[], new_node_yaml[],
	new_fabric_yaml[], new_stack_yaml[], new_prices_yaml[];

#endif
