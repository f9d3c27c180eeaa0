// Jobs: those that run with how far they are, those that wait, and those that ended last.
import { call } from './api.js';
import { byId, cell, el, emptyRow, figure, replaceKeepingFocus, rowHead } from './dom.js';
import { ago, epsilon, grouped, label, moment, shortName } from './format.js';

const COLUMNS = 8;
const SHOWN = 25;

function progress(job) {
  const { progress: at } = job;
  if (job.state === 'RUNNING' && at) {
    const name = `${shortName(job.name)}, ${at.stage}`;
    const known = at.total !== '0';
    return [el('progress', known ? { max: at.total, value: at.completed, 'aria-label': name } : { 'aria-label': name }),
      el('span', { class: 'stage' }, `${at.stage} `, known && figure(at.completed, `${grouped(at.completed)} of ${grouped(at.total)}`))];
  }
  if (job.state === 'RUNNING') return ['starting'];
  if (job.state === 'FAILED') return [el('span', { class: 'failure' }, job.failure)];
  return [el('span', { class: 'quiet' }, job.attempts > 1 ? `${job.attempts} attempts` : '–')];
}

const when = (time) => time ? el('time', { datetime: time, title: `${moment(time)} UTC` }, ago(time)) : el('span', { class: 'quiet' }, '–');

function row(job) {
  return el('tr', { role: 'row', 'data-job': job.name },
    rowHead('Job', { class: 'name', title: job.name }, shortName(job.name)),
    cell('Dataset', { class: 'name' }, shortName(job.spec.dataset)),
    cell('Method', {}, label(job.plan.method)),
    cell('ε', { class: 'number' }, figure(job.plan.epsilon, epsilon(job.plan.epsilon))),
    cell('State', {}, el('span', { class: `state ${label(job.state)}` }, label(job.state))),
    cell('Progress', { class: job.state === 'RUNNING' || job.state === 'FAILED' || job.attempts > 1 ? 'progress-cell' : 'none' }, ...progress(job)),
    cell('Submitted', {}, when(job.create_time)),
    cell('Ended', { class: job.end_time ? undefined : 'none' }, when(job.end_time)));
}

export async function refreshJobs(parent) {
  const { jobs = [] } = await call('OverviewService/ListRecentJobs', { parent, page_size: SHOWN });
  const rows = jobs.map(row);
  if (rows.length === 0) rows.push(emptyRow(COLUMNS, 'There is no job yet.'));
  replaceKeepingFocus(byId('jobs-rows'), ...rows);
}
